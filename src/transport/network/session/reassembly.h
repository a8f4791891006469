// The receiving half of a session: reassembles the stream and extracts the packets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "transport/network/wire/datagram.h"
#include "transport/packet.h"

namespace starling::network {

/// The receiver of the packets. deliver() returns whether it accepts more packets; it returns false after it has cleared the Reassembly,
/// which it must not destroy. A packet for which deliver() throws, for lack of memory, counts as not delivered.
class PacketSink {
  public:
    virtual bool deliver(const packet::Header& header, const std::byte* payload) = 0;

  protected:
    ~PacketSink() = default;
};

/// The state of the incoming stream. Packets that arrive in order are delivered without a copy. Data that arrives out of order is copied
/// and stored, at most `window` bytes of it. The beginning of a packet that ends in the next datagram is stored as well. Not thread-safe.
class Reassembly {
  public:
    explicit Reassembly(uint32_t window) : window_(window) {}
    Reassembly(const Reassembly&) = delete;
    Reassembly& operator=(const Reassembly&) = delete;
    ~Reassembly() { clear(); }

    enum class ReassemblyResult : uint8_t {
        in_order,   ///< new bytes at the front of the stream
        early,      ///< new bytes that arrived behind a gap
        duplicate,  ///< no new bytes
        beyond,     ///< bytes past the window: not stored, at least in part
        broken,     ///< contains an invalid packet header: the stream cannot continue
        stopped,    ///< the sink accepts no more packets
    };
    /// Adds stream bytes (a multiple of kGrain, aligned to it) that begin at `offset`. If the sink throws, or std::bad_alloc is thrown,
    /// pass the same bytes again: those that were not delivered are still expected.
    ReassemblyResult accept(uint64_t offset, const std::byte* bytes, uint32_t count, PacketSink& sink);

    /// Returns the offset below which every byte has arrived. During deliver() it already includes the packet.
    uint64_t expected() const { return expected_; }
    uint32_t window() const { return window_; }
    bool has_holes() const { return early_ != nullptr; }
    /// Writes the ranges that arrived out of order, relative to expected(), lowest first, at most `most` of them. `more`: there were
    /// further ranges.
    int ranges(AckRange* out, int most, bool& more) const;
    /// Discards everything stored and begins a new stream.
    void clear();

  private:
    struct OutOfOrderBytes;
    struct Undo;
    ReassemblyResult consume(const std::byte* bytes, uint32_t count, PacketSink& sink);
    ReassemblyResult drain(PacketSink& sink);
    /// Appends bytes to the incomplete packet; returns how many it took.
    uint32_t complete_partial(const std::byte* bytes, uint32_t count);
    bool deliver_partial(PacketSink& sink);
    ReassemblyResult store(uint64_t offset, const std::byte* bytes, uint32_t count);
    ReassemblyResult extract_packets(const std::byte* bytes, uint32_t count, PacketSink& sink);

    const uint32_t window_;
    uint64_t expected_ = 0;
    OutOfOrderBytes* early_ = nullptr;  ///< sorted by offset, without overlap
    uint32_t early_bytes_ = 0;

    /// The beginning of an incomplete packet: at least a part of its header, then payload.
    std::unique_ptr<std::byte[]> partial_;
    uint32_t partial_size_ = 0;  ///< number of bytes in partial_
    uint32_t partial_need_ = 0;  ///< length of the whole packet, bytes; while its header is incomplete, length of the header
};

}  // namespace starling::network
