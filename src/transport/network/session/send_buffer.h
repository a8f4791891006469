// The send buffer of a session: the stream of packets from the first byte that is not acknowledged to the last that was
// committed. Packets lie whole in slabs, so that a datagram points into them and nothing is copied but the payload
// into its place; slabs come from a pool that all sessions of a process share.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>

#include "transport/network/session/ranges.h"
#include "transport/packet.h"

namespace starling::network {

/// A piece of memory for packets. `start` is the stream offset of its first byte.
struct Slab {
    Slab* next;
    uint64_t start;
    uint32_t used;
    uint32_t capacity;
    std::byte* data() { return reinterpret_cast<std::byte*>(this + 1); }
    uint64_t end() const { return start + used; }
};
static_assert(sizeof(Slab) % 8 == 0);

/// Keeps some slabs of both sizes, so that traffic back and forth allocates nothing. Not thread-safe.
class SlabPool {
  public:
    SlabPool() = default;
    SlabPool(const SlabPool&) = delete;
    SlabPool& operator=(const SlabPool&) = delete;
    ~SlabPool();

    static constexpr uint32_t kSmall = 4096 - sizeof(Slab);       ///< for a session that says little
    static constexpr uint32_t kLarge = 72 * 1024 - sizeof(Slab);  ///< for streams, and for the longest packet
    /// An empty slab that holds `bytes` (at most kLarge); a small one if `small` and that suffices.
    Slab* take(uint32_t bytes, bool small);
    void give(Slab* slab);

  private:
    static constexpr int kKept[2] = {16, 8};  ///< small and large ones that are kept
    Slab* free_[2] = {};
    int count_[2] = {};
};

/// Bytes of stream that a packet with so much payload takes.
constexpr uint32_t packet_bytes(uint32_t payload) {
    return static_cast<uint32_t>(sizeof(packet::Header)) + ((payload + 7) & ~7u);
}

class SendBuffer {
  public:
    explicit SendBuffer(SlabPool& pool) : pool_(pool) {}
    SendBuffer(const SendBuffer&) = delete;
    SendBuffer& operator=(const SendBuffer&) = delete;
    ~SendBuffer() { clear(0); }

    uint64_t begin() const { return begin_; }  ///< first byte that is kept
    uint64_t end() const { return end_; }      ///< one past the last committed byte
    uint64_t kept() const { return end_ - begin_; }

    /// Room for a packet; its payload follows the header. Reserving again without a commit is free.
    packet::Header* reserve(uint32_t payload);
    /// Appends the reserved packet to the stream, with at most as many bytes as reserved.
    void commit(uint32_t payload);

    /// Where the bytes of `range` (all kept) lie: fills at most `most` parts and says how many, and cuts range.end if
    /// they do not suffice.
    int parts(Range& range, iovec* out, int most) const;
    /// The end of as many whole packets from range.start on as fit into `room` bytes; range.start + room if the first one
    /// doesn't. `hint` is where some packet at or before range.start begins, if it still is known, and is moved on.
    uint64_t cut(Range range, uint32_t room, uint64_t& hint) const;
    /// Everything below `offset` is acknowledged.
    void release(uint64_t offset);
    /// Throws everything away and begins anew at `offset`.
    void clear(uint64_t offset);

  private:
    Slab* slab_at(uint64_t offset) const;

    SlabPool& pool_;
    Slab* head_ = nullptr;
    Slab* tail_ = nullptr;
    uint64_t begin_ = 0, end_ = 0;
};

}  // namespace starling::network
