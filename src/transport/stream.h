// Streams: the data of a large message on its way over several paths at once, in pieces. Both classes are pure
// book-keeping: what is still to be sent, and what has arrived. A path may die at any time; what it carried is sent
// again over another, so a piece may come twice, and the receiver alone knows when everything is there.
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

/// A run of a stream's bytes, as it is announced to the receiver.
struct StreamFragment {
    uint32_t serial = 0;      ///< of the receiver's request
    uint32_t generation = 0;  ///< tells requests of one serial apart
    uint64_t offset = 0;      ///< in the message
    uint64_t bytes = 0;
};

/// Names a path among those that carry pieces. kReliablePath: a session, which repeats what is lost by itself.
using PathId = uint32_t;
inline constexpr PathId kReliablePath = 0;

/// The sending side: what has not been given to a path yet, and which path carries what. Lives from the receiver's
/// wish for the data until its confirmation (`fetched`), and must not move while a connection knows it. Not
/// thread-safe.
class OutStream {
  public:
    /// What the pieces' headers say, and where the data is: `memory`, or if it is null whatever `pack` writes.
    struct Source {
        uint32_t serial = 0;      ///< the receiver's name for its request; header.tag
        uint32_t generation = 0;  ///< tells requests of the same serial apart: the message's sequence; header.sequence
        uint64_t bytes = 0;
        const std::byte* memory = nullptr;
        void (*pack)(void* user, uint64_t offset, std::byte* to, uint64_t bytes) = nullptr;
        /// Its connection can't carry all of it: what has_work() says is left goes as packets.
        void (*stranded)(OutStream& stream) = nullptr;
        void* user = nullptr;
    };
    explicit OutStream(const Source& source) : source_(source) {}
    ~OutStream() { hook.unlink(); }
    OutStream(const OutStream&) = delete;
    OutStream& operator=(const OutStream&) = delete;

    const Source& source() const { return source_; }
    /// Whether bytes wait for a path.
    bool has_work() const { return next_ < source_.bytes || !again_.empty(); }
    uint64_t waiting_bytes() const;

    /// What take() would give.
    StreamRange peek(uint64_t most) const;
    /// Gives the next at most `most` bytes to a path: first what another one lost. Empty if nothing waits.
    StreamRange take(PathId path, uint64_t most);
    /// The path died: all it took waits again, but for what the receiver has confirmed. Whether that was anything.
    bool lose(PathId path);
    /// All paths that may die did.
    void lose_all();
    /// The receiver has everything before `offset`: it need not be sent again.
    void confirm(uint64_t offset);

    ListHook hook;               ///< in its connection's list
    void* connection = nullptr;  ///< the transport's, that it was given to; null: none, or one that was dropped

  private:
    struct Taken {
        StreamRange range;
        PathId path;
    };
    Source source_;
    uint64_t next_ = 0;               ///< first byte that no path ever took
    std::vector<StreamRange> again_;  ///< lost by a path; the last is taken first
    std::vector<Taken> taken_;        ///< by paths that may die
};

/// The receiving side: which bytes of a message have arrived. Not thread-safe.
class Coverage {
  public:
    /// Notes that a range has arrived; gives how many of its bytes are new.
    uint64_t add(StreamRange range);
    uint64_t bytes() const { return bytes_; }
    /// All bytes before this one have arrived.
    uint64_t prefix() const { return prefix_; }
    void clear() { *this = {}; }

  private:
    uint64_t prefix_ = 0, bytes_ = 0;
    std::vector<StreamRange> islands_;  ///< beyond the prefix: sorted, apart from each other
};

}  // namespace starling::transport
