// A FIFO of packets of variable length in one block of memory. No packet extends across the end of the block. The queue starts again at the
// beginning of the block whenever it becomes empty, so that light traffic stays in the cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "transport/packet.h"

namespace starling::loopback {

/// A packet in the queue; its payload follows.
struct LoopbackPacket {
    uint32_t size;   ///< bytes of the entry and its payload, a multiple of 8
    uint32_t bytes;  ///< bytes of payload
    void* target;    ///< path to which the packet is delivered; null: the path was closed
    packet::Header header;
    std::byte* payload() { return reinterpret_cast<std::byte*>(this + 1); }
};
static_assert(sizeof(LoopbackPacket) % 8 == 0);

class LoopbackQueue {
  public:
    static constexpr uint32_t kBytes = 256 * 1024;

    bool empty() const { return count_ == 0; }
    uint32_t count() const { return count_; }

    /// Returns space for an entry at the tail, null if there is no room. The queue does not change before push().
    LoopbackPacket* reserve(uint32_t bytes);
    /// Appends the reserved entry, with at most as many bytes of payload as reserved.
    void push(LoopbackPacket& entry, uint32_t bytes);

    LoopbackPacket& front() { return at(head_); }
    void pop();

    /// Visits all entries, oldest first.
    template <class F>
    void each(F&& visit) {
        uint32_t place = head_;
        for (uint32_t i = 0; i < count_; ++i) {
            LoopbackPacket& entry = at(place);
            visit(entry);
            place += entry.size;
            if (place == end_) place = 0;
        }
    }

  private:
    LoopbackPacket& at(uint32_t place) { return *reinterpret_cast<LoopbackPacket*>(memory_.get() + place); }

    std::unique_ptr<std::byte[]> memory_;  ///< allocated at the first reserve()
    uint32_t head_ = 0, tail_ = 0, count_ = 0;
    uint32_t end_ = kBytes;  ///< offset of the end of the entries before the wrap
};

}  // namespace starling::loopback
