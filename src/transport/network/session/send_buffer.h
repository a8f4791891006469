// The send buffer of a session: the stream's packets, from the first unacknowledged byte to the last committed one. Each packet lies
// in one slab, and datagrams are sent from there (iovec). So the only copy is that of the payload into the slab. All sessions of a process
// share one pool of slabs.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>

#include "transport/network/session/ranges.h"
#include "transport/packet.h"

namespace starling::network {

/// A block of memory for packets. `start` is the stream offset of its first byte.
struct Slab {
    Slab* next;
    uint64_t start;
    uint32_t used;
    uint32_t capacity;
    std::byte* data() { return reinterpret_cast<std::byte*>(this + 1); }
    uint64_t end() const { return start + used; }
};
static_assert(sizeof(Slab) % 8 == 0);

/// The free slabs of both sizes. Some are kept, so that steady traffic allocates nothing. Not thread-safe.
class SlabPool {
  public:
    SlabPool() = default;
    SlabPool(const SlabPool&) = delete;
    SlabPool& operator=(const SlabPool&) = delete;
    ~SlabPool();

    static constexpr uint32_t kSmall = 4096 - sizeof(Slab);  ///< bytes of a small slab, for a session with little traffic
    /// Bytes of a large slab, for streams, and for the longest packet.
    static constexpr uint32_t kLarge = 72 * 1024 - sizeof(Slab);
    /// Returns an empty slab that holds `bytes` (at most kLarge): a small slab if `small` is set and its size suffices.
    Slab* allocate(uint32_t bytes, bool small);
    void free_slab(Slab* slab);

  private:
    static constexpr int kKept[2] = {16, 8};  ///< number of small and of large slabs that are kept
    Slab* free_[2] = {};
    int count_[2] = {};
};

/// Returns the stream bytes that a packet with this payload occupies.
constexpr uint32_t packet_bytes(uint32_t payload) {
    return static_cast<uint32_t>(sizeof(packet::Header)) + ((payload + 7) & ~7u);
}

class SendBuffer {
  public:
    explicit SendBuffer(SlabPool& pool) : pool_(pool) {}
    SendBuffer(const SendBuffer&) = delete;
    SendBuffer& operator=(const SendBuffer&) = delete;
    ~SendBuffer() { clear(0); }

    uint64_t begin() const { return begin_; }  ///< stream offset of the first byte that is kept
    uint64_t end() const { return end_; }      ///< stream offset one past the last committed byte
    uint64_t stored() const { return end_ - begin_; }

    /// Returns space for a packet; its payload follows the header. Reserving again without a commit has no cost.
    packet::Header* reserve(uint32_t payload);
    /// Appends the reserved packet to the stream, with at most as many payload bytes as reserved.
    void commit(uint32_t payload);

    /// Finds the memory of the bytes in `range`, all of which must be kept. Fills at most `most` parts and returns their number, and
    /// shortens range.end if they do not suffice.
    int parts(SequenceRange& range, iovec* out, int most) const;
    /// Returns the end of as many whole packets from range.start on as fit into `room` bytes, or range.start + room if the first does not
    /// fit. `hint` is the stream offset of a packet at or before range.start, which speeds up the search if that packet is still kept; the
    /// call advances `hint`.
    uint64_t cut(SequenceRange range, uint32_t room, uint64_t& hint) const;
    /// Frees everything below `offset`, because the peer has acknowledged it.
    void release(uint64_t offset);
    /// Discards everything and begins again at `offset`.
    void clear(uint64_t offset);

  private:
    Slab* slab_at(uint64_t offset) const;

    SlabPool& pool_;
    Slab* head_ = nullptr;
    Slab* tail_ = nullptr;
    uint64_t begin_ = 0, end_ = 0;
};

}  // namespace starling::network
