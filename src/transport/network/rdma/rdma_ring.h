// Direct rings over RC: short frames are written by RDMA into memory of the receiver, who polls it. A ring is one way, of one connection; at most
// STARLING_MAX_DIRECT a process grants. Its owner tells where it is in his greeting, or by a later frame, and gets his place back by asking for it.
//
// A slot is written by one write that ends with its trailer, so what is short needs no more than a slot's end: the frame lies right before the
// trailer. The stamp, its last word, tells the lap: nothing is cleared, and nothing that a user sends can be taken for it, since trailers are
// always at the same place. That the last word of a write is seen last is what adapters do, and Soft-RoCE; the architecture does not promise it
// (docs/verbs.md). `after` says how many frames of the queue come before: so what goes by both ways keeps its order. What the sender may write again
// is told by the trailers of the other ring, and where there is none by a frame `consumed`.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/counter_start.h"
#include "transport/network/rdma/memory_windows.h"
#include "transport/verbs/device.h"

namespace starling::network {

/// What the owner of a ring tells of it.
struct RcRingOffer {
    uint64_t address = 0;
    uint32_t key = 0;
    uint32_t noted = 0;  ///< 1: he may sleep, so each write has a note that wakes him
};

/// The end of each slot.
struct RcSlotEnd {
    uint32_t after = 0;     ///< frames that went by the queue before
    uint32_t consumed = 0;  ///< slots of the other direction's ring that the writer has taken
    uint32_t bytes = 0;     ///< of the frame
    uint32_t stamp = 0;     ///< the lap, from 1; written last
};
static_assert(sizeof(RcRingOffer) == 16 && sizeof(RcSlotEnd) == 16);

/// The slots of a ring: at the owner, and at the writer a mirror that the device writes from: one whose slot may be written again has been.
class RcRing {
  public:
    static constexpr uint32_t kSlots = 32, kSlot = 1280;  ///< a message of 1 KB with its headers, and some more
    static constexpr uint32_t kBytes = kSlots * kSlot;    ///< 40 KB: for each direction at each end
    static constexpr uint32_t kMost = kSlot - sizeof(RcSlotEnd);
    /// The word of a note of a write into a ring; a receive never has that serial.
    static constexpr uint32_t kWord = ~0u;

    /// Null: the port does not take the memory.
    static std::unique_ptr<RcRing> make(RcPort& port);
    ~RcRing();

    // At the owner.
    RcRingOffer offer(bool noted) const;
    struct Frame {
        const std::byte* data = nullptr;
        const RcSlotEnd* end = nullptr;  ///< null: there is none
    };
    Frame front() const;
    void pop() { ++taken_; }
    uint32_t taken() const { return taken_; }
    uint32_t told = kCounterStart;  ///< of these, what the writer knows
    bool leaving = false;           ///< it was asked back

    // At the writer.
    void point(const RcRingOffer& offer);
    /// Busy: there is no room, in the ring or in the queue; too_long.
    verbs::Status send(verbs::Queue& queue, uint32_t inline_bytes, const iovec* parts, int count, uint64_t bytes,
                       uint32_t after, uint32_t consumed);
    /// False: no owner says that.
    bool credit(uint32_t consumed);
    bool left = false;  ///< the owner wants it back
    bool lent = false;  ///< the device sends from the mirror, or has: a queue that lingers still may

  private:
    RcRing(RcPort& port, std::byte* memory) : port_(port), memory_(memory) {}
    std::byte* slot_end(uint32_t number) const { return memory_ + (number % kSlots + 1) * uint64_t{kSlot}; }
    static uint32_t lap(uint32_t number) { return number / kSlots + 1; }

    RcPort& port_;
    std::byte* const memory_;
    verbs::Registration* registration_ = nullptr;
    uint32_t taken_ = kCounterStart;
    RcRingOffer there_;
    uint32_t written_ = kCounterStart, credited_ = kCounterStart;
};

}  // namespace starling::network
