// A large message copied by both sides at once: the receiver reads chunks from the front, the sender writes
// chunks from the back, until they meet. Which chunk is whose is claimed here, in the receiver's region. A sender that
// does not come, or comes late, finds nothing left to claim.
#pragma once

#include <atomic>
#include <cstdint>

namespace starling::shm {

inline constexpr uint32_t kSplitSlots = 16;

/// `claims` = generation (16 bits) | chunks claimed from the front (24) | from the back (24). The generation
/// belongs to one message; a claim with an old one fails.
struct alignas(64) SplitSlot {
    std::atomic<uint64_t> claims;
    std::atomic<uint32_t> written;  ///< chunks the sender has finished, well or not
    std::atomic<uint32_t> failed;   ///< 1: it could not write one of them
};

/// The receiver's: opens the slot for a message; gives its generation. Only while no one else can claim.
inline uint32_t open_split(SplitSlot& slot) {
    const uint64_t generation = ((slot.claims.load(std::memory_order_relaxed) >> 48) + 1) & 0xffff;
    slot.written.store(0, std::memory_order_relaxed);
    slot.failed.store(0, std::memory_order_relaxed);
    slot.claims.store(generation << 48, std::memory_order_release);
    return static_cast<uint32_t>(generation);
}

/// Claims the next chunk of `total` from the front or the back; -1 if all are taken or the message is another.
inline int64_t claim_chunk(SplitSlot& slot, uint32_t generation, uint32_t total, bool from_back) {
    uint64_t seen = slot.claims.load(std::memory_order_acquire);
    for (;;) {
        const uint32_t front = seen >> 24 & 0xffffff, back = seen & 0xffffff;
        if (seen >> 48 != generation || front + back >= total) return -1;
        const uint64_t next = seen + (from_back ? 1 : uint64_t{1} << 24);
        if (slot.claims.compare_exchange_weak(seen, next, std::memory_order_acq_rel))
            return from_back ? total - 1 - back : front;
    }
}

inline uint32_t claimed_from_back(const SplitSlot& slot) {
    return static_cast<uint32_t>(slot.claims.load(std::memory_order_acquire) & 0xffffff);
}

}  // namespace starling::shm
