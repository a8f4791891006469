// Packets of variable length in a row, in one block of memory: put in at the tail, taken out at the head. No packet lies across the
// end of the block. What is taken out last leaves the queue empty and at its beginning, so that short traffic stays in the cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "transport/packet.h"

namespace starling::loopback {

/// A packet in the queue; its payload follows.
struct Entry {
    uint32_t size;   ///< of all of it, a multiple of 8
    uint32_t bytes;  ///< of payload
    void* target;    ///< whom it is for; null: nobody any more
    packet::Header header;
    std::byte* payload() { return reinterpret_cast<std::byte*>(this + 1); }
};
static_assert(sizeof(Entry) % 8 == 0);

class Queue {
  public:
    static constexpr uint32_t kBytes = 256 * 1024;

    bool empty() const { return count_ == 0; }
    uint32_t count() const { return count_; }

    /// A place for an entry at the tail, null if there is no room. Nothing changes before push().
    Entry* reserve(uint32_t bytes);
    /// Puts the reserved entry into the queue, with at most as many bytes of payload.
    void push(Entry& entry, uint32_t bytes);

    Entry& front() { return at(head_); }
    void pop();

    /// Visits all entries, the oldest first.
    template <class F>
    void each(F&& visit) {
        uint32_t place = head_;
        for (uint32_t i = 0; i < count_; ++i) {
            Entry& entry = at(place);
            visit(entry);
            place += entry.size;
            if (place == end_) place = 0;
        }
    }

  private:
    Entry& at(uint32_t place) { return *reinterpret_cast<Entry*>(memory_.get() + place); }

    std::unique_ptr<std::byte[]> memory_;  ///< from the first packet on
    uint32_t head_ = 0, tail_ = 0, count_ = 0;
    uint32_t end_ = kBytes;  ///< where the entries before the wrap end
};

}  // namespace starling::loopback
