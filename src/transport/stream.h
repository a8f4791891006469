// Streams: the data of a large message, sent in fragments over several paths at once. Both classes are pure bookkeeping. OutStream records
// the bytes still to send, Coverage the bytes that arrived. A path may die at any time, and its bytes are then sent again over another
// path. So a fragment may arrive twice, and only the receiver knows when all bytes have arrived.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/list.h"

namespace starling::transport {

/// Bytes [begin, end) of a message.
struct StreamRange {
    uint64_t begin = 0, end = 0;
    uint64_t bytes() const { return end - begin; }
    bool empty() const { return begin == end; }
    bool operator==(const StreamRange&) const = default;
};

/// A run of a stream's bytes, as its header announces it to the receiver.
struct StreamFragment {
    uint32_t serial = 0;      ///< request id of the receive
    uint32_t generation = 0;  ///< number that distinguishes consecutive requests with one serial
    uint64_t offset = 0;      ///< offset in the message, bytes
    uint64_t bytes = 0;
};

/// Identifies one of the paths that carry fragments. kReliablePath is a session, which retransmits lost data itself.
using PathId = uint32_t;
inline constexpr PathId kReliablePath = 0;

/// The sending side: the bytes that no path has taken yet, and which path carries the others. Lives from the receiver's CTS until its FIN,
/// and must not move while a connection refers to it. Not thread-safe.
class OutStream {
  public:
    /// The data of a stream, and the fields of its fragments' headers. The data is at `memory` or, if that is null, `pack` writes it.
    struct StreamSource {
        uint32_t serial = 0;  ///< request id of the receive; sent in header.tag
        /// Distinguishes requests with one serial: the message's sequence number; sent in header.sequence.
        uint32_t generation = 0;
        uint64_t bytes = 0;
        const std::byte* memory = nullptr;
        void (*pack)(void* user, uint64_t offset, std::byte* to, uint64_t bytes) = nullptr;
        /// Called if the connection cannot carry all of the stream: the caller sends the bytes that has_work() reports as packets.
        void (*stranded)(OutStream& stream) = nullptr;
        void* user = nullptr;
    };
    explicit OutStream(const StreamSource& source) : source_(source) {}
    ~OutStream() { hook.unlink(); }
    OutStream(const OutStream&) = delete;
    OutStream& operator=(const OutStream&) = delete;

    const StreamSource& source() const { return source_; }
    /// Returns whether bytes wait for a path.
    bool has_work() const { return next_ < source_.bytes || !again_.empty(); }
    uint64_t waiting_bytes() const;

    /// Returns the range that extract() would return.
    StreamRange peek(uint64_t most) const;
    /// Assigns the next bytes, at most `most`, to a path, beginning with bytes that another path lost. Returns an empty range if no bytes
    /// wait.
    StreamRange extract(PathId path, uint64_t most);
    /// Makes the bytes that a path had taken wait for a path again, because the path died. Bytes that the receiver has confirmed are
    /// excluded. Returns whether there were any.
    bool lose(PathId path);
    /// Calls lose() for all paths except kReliablePath.
    void lose_all();
    /// Records that the receiver has every byte before `offset`, so that these bytes are not sent again.
    void confirm(uint64_t offset);

    ListHook hook;               ///< membership in the list of the connection that carries the stream
    void* connection = nullptr;  ///< connection that carries the stream, owned by the transport; null: none, or a dropped one

  private:
    struct Taken {
        StreamRange range;
        PathId path;
    };
    StreamSource source_;
    uint64_t next_ = 0;               ///< offset of the first byte that no path ever took
    std::vector<StreamRange> again_;  ///< ranges lost by a path; the last is taken first
    std::vector<Taken> taken_;        ///< ranges on paths other than kReliablePath
};

/// The receiving side: records which bytes of a message have arrived. Not thread-safe.
class Coverage {
  public:
    /// Records that a range has arrived; returns how many of its bytes are new.
    uint64_t add(StreamRange range);
    uint64_t bytes() const { return bytes_; }
    /// Returns the number of bytes at the beginning of the message that have arrived without a gap.
    uint64_t prefix() const { return prefix_; }
    void clear() { *this = {}; }

  private:
    uint64_t prefix_ = 0, bytes_ = 0;
    std::vector<StreamRange> islands_;  ///< ranges that arrived beyond the prefix: sorted, not adjacent
};

class Path;

/// The interface of a transport whose connections carry streams: Transport::streams().
class StreamCarrier {
  public:
    /// Sends the stream over a connection of the path, if there is one. Returns whether a connection carries the stream, now or from an
    /// earlier call. Data that a connection cannot carry is stranded (OutStream::StreamSource) and is sent as packets.
    virtual bool carry(Path& path, OutStream& stream) = 0;
    /// Ends the stream: its memory is not read afterwards. `confirmed`: the receiver has all of the data.
    virtual void end(OutStream& stream, bool confirmed) = 0;

  protected:
    ~StreamCarrier() = default;
};

}  // namespace starling::transport
