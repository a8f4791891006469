// The receiving half of a session: puts the stream together again and takes the packets out of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "transport/network/wire/datagram.h"
#include "transport/packet.h"

namespace starling::network {

/// Who gets the packets; may do anything but destroy the Reassembly. Returns whether more are wanted: false after
/// it has cleared it. A packet that it ends with an exception, for want of memory, has not been delivered.
class PacketSink {
  public:
    virtual bool deliver(const packet::Header& header, const std::byte* payload) = 0;

  protected:
    ~PacketSink() = default;
};

/// Packets that arrive in order are delivered from where they lie. What comes early is copied and kept, at most
/// `window` bytes of it; so is the beginning of a packet whose end is in the next datagram. Not thread-safe.
class Reassembly {
  public:
    explicit Reassembly(uint32_t window) : window_(window) {}
    Reassembly(const Reassembly&) = delete;
    Reassembly& operator=(const Reassembly&) = delete;
    ~Reassembly() { clear(); }

    enum class Result : uint8_t {
        in_order,   ///< new bytes at the front of the stream
        early,      ///< new, with a hole before them
        duplicate,  ///< nothing new
        beyond,     ///< past the window: not taken, or not all of it
        broken,     ///< it holds a header that no sender writes: the stream can't go on
        stopped,    ///< the sink wants no more
    };
    /// Takes stream bytes (multiples of kGrain, aligned to it) that begin at `offset`. If that ends with an exception of the
    /// sink's, or by std::bad_alloc, the same bytes are to be given again: what was not delivered is still expected.
    Result accept(uint64_t offset, const std::byte* bytes, uint32_t count, PacketSink& sink);

    /// Every byte below this has arrived. While a packet is delivered it is already counted.
    uint64_t expected() const { return expected_; }
    uint32_t window() const { return window_; }
    bool has_holes() const { return early_ != nullptr; }
    /// What arrived early, relative to expected(), lowest first; at most `most` ranges. `more`: there were more.
    int ranges(AckRange* out, int most, bool& more) const;
    /// Begins a new stream.
    void clear();

  private:
    struct OutOfOrderBytes;
    struct Undo;
    Result consume(const std::byte* bytes, uint32_t count, PacketSink& sink);
    Result drain(PacketSink& sink);
    /// Adds to the packet whose beginning is kept; gives how many bytes it took.
    uint32_t complete_partial(const std::byte* bytes, uint32_t count);
    bool deliver_partial(PacketSink& sink);
    Result keep(uint64_t offset, const std::byte* bytes, uint32_t count);
    Result register_handler(const std::byte* bytes, uint32_t count, PacketSink& sink);

    const uint32_t window_;
    uint64_t expected_ = 0;
    OutOfOrderBytes* early_ = nullptr;  ///< by offset, without overlap
    uint32_t early_bytes_ = 0;

    /// The beginning of a packet: a header at least in part, then payload.
    std::unique_ptr<std::byte[]> partial_;
    uint32_t partial_size_ = 0;  ///< bytes of it that are there
    uint32_t partial_need_ = 0;  ///< bytes of the whole packet; of the header while that is not complete
};

}  // namespace starling::network
