// Direct rings over RC: the sender writes short frames by RDMA into the receiver's memory, and the receiver polls it. A ring serves one
// direction of one connection. A process grants at most STARLING_MAX_DIRECT rings. The owner of a ring (the receiver) sends its address in
// its hello or in a later frame, and gets the ring back by a request.
//
// Each frame is one RDMA write that ends with the slot's trailer. The frame is right before the trailer, so a short frame writes only the
// end of a slot. The stamp, the last word of the trailer, is the number of the lap. So no slot is cleared, and user data is never taken for
// a stamp, since trailers are always at the same offsets. The architecture does not guarantee that the last word of a write is visible last
// (docs/verbs.md): a device that copies with the processor, as Soft-RoCE does, may store the words in any order. So the trailer has a check
// of the frame, and a frame whose check does not match has not arrived yet. `after` counts the earlier frames of the queue, which keeps the
// order of frames that use both paths. The trailers of the reverse ring report the slots that may be written again; where there is no
// reverse ring, a `consumed` frame does.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/counter_start.h"
#include "transport/network/rdma/memory_windows.h"
#include "transport/verbs/device.h"

namespace starling::network {

/// The location of a ring, which its owner sends to the writer.
struct RcRingOffer {
    uint64_t address = 0;
    uint32_t key = 0;
    uint32_t noted = 0;  ///< 1: the owner may sleep, so each write must carry an immediate that wakes it
};

/// The trailer of each slot.
struct RcSlotEnd {
    uint32_t after = 0;     ///< number of frames sent before this one by the queue
    uint32_t consumed = 0;  ///< number of slots of the reverse ring that the writer has taken
    uint32_t bytes = 0;     ///< length of the frame
    uint32_t check = 0;     ///< RcRing::check_of() the frame and the other words
    uint32_t reserved = 0;
    uint32_t stamp = 0;  ///< number of the lap, from 1
};
static_assert(sizeof(RcRingOffer) == 16 && sizeof(RcSlotEnd) == 24);

/// The slots of a ring. The owner has the ring itself. The writer has a mirror (a local copy of all slots) from which its device sends:
/// when a slot may be reused, the device has finished reading it.
class RcRing {
  public:
    /// Number and bytes of slots: a message of 1 KB with its headers, and some more.
    static constexpr uint32_t kSlots = 32, kSlot = 1280;
    static constexpr uint32_t kBytes = kSlots * kSlot;  ///< bytes of a ring: 40 KB, for each direction at each end
    static constexpr uint32_t kMost = kSlot - sizeof(RcSlotEnd);
    /// Immediate data of an RDMA write into a ring; no RDMA target has this word.
    static constexpr uint32_t kWord = ~0u;

    /// Returns null if the port can't register the memory.
    static std::unique_ptr<RcRing> make(RcPort& port);
    ~RcRing();

    /// Returns the check of a frame, whose padded data lies before its trailer. It shows whether all words are those that the writer wrote;
    /// it protects against no attacker.
    static uint32_t check_of(const std::byte* frame, const RcSlotEnd& end);

    // Functions for the owner.
    RcRingOffer offer(bool noted) const;
    struct RingFrame {
        const std::byte* data = nullptr;
        const RcSlotEnd* end = nullptr;  ///< trailer of the frame; null: no frame has arrived
        bool broken = false;             ///< whether the frame's check has not matched for kTornMost: a fault of the writer
    };
    RingFrame front();
    void pop() { ++taken_; }
    uint32_t taken() const { return taken_; }
    uint32_t reported = kCounterStart;  ///< value of taken() that was last reported to the writer
    bool leaving = false;               ///< whether the owner has asked the writer to stop using the ring

    // Functions for the writer.
    void point(const RcRingOffer& offer);
    /// Writes one frame. Returns busy if the ring or the queue is full, or too_long.
    verbs::WorkStatus send(verbs::Queue& queue, uint32_t inline_bytes, const iovec* parts, int count, uint64_t bytes,
                           uint32_t after, uint32_t consumed);
    /// Frees the slots up to `consumed`. Returns false if the number is impossible.
    bool credit(uint32_t consumed);
    bool left = false;  ///< whether the owner has asked for the ring, so that this side writes nothing more into it
    bool lent = false;  ///< whether the device may still read the mirror, even after the queue was closed to linger

  private:
    RcRing(RcPort& port, std::byte* memory) : port_(port), memory_(memory) {}
    std::byte* slot_end(uint32_t number) const { return memory_ + (number % kSlots + 1) * uint64_t{kSlot}; }
    static uint32_t lap(uint32_t number) { return number / kSlots + 1; }

    RcPort& port_;
    std::byte* const memory_;
    verbs::Registration* registration_ = nullptr;
    uint32_t taken_ = kCounterStart;
    /// Time (ns) since which the check of the next frame does not match; 0: it does, or there is no frame.
    uint64_t torn_since_ = 0;
    RcRingOffer there_;
    uint32_t written_ = kCounterStart, credited_ = kCounterStart;
};

}  // namespace starling::network
