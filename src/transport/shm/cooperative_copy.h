// A large message copied by both sides at once: the receiver reads chunks from the front and the sender writes chunks from the back, until
// they meet. Both claim chunks in a slot in the receiver's region. A sender that never starts, or starts late, finds nothing left to claim.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/page_size.h"

namespace starling::shm {

inline constexpr uint32_t kSplitSlots = 16;

/// Most chunks of one message; must fit the 8-bit counts in SplitSlot::claims.
inline constexpr uint32_t kSplitChunks = 16;

/// Returns the length of each chunk but the last, in bytes, for a message of `bytes`: whole pages.
inline uint64_t split_chunk(uint64_t bytes) {
    constexpr uint64_t kLeast = 16384;
    const uint64_t chunk = ((bytes + kSplitChunks - 1) / kSplitChunks + kPage - 1) & ~(kPage - 1);
    return chunk < kLeast ? kLeast : chunk;
}

/// The word in which both sides claim chunks. `claims` = generation (48 bits) | chunks claimed from the front (8) | from the back (8). Each
/// message has its own generation. A claim with an old generation fails, however late it is made: 48 bits never wrap.
struct alignas(64) SplitSlot {
    std::atomic<uint64_t> claims;
    std::atomic<uint32_t> written;  ///< number of chunks that the sender has finished, successfully or not
    std::atomic<uint32_t> failed;   ///< 1: the sender could not write one of the chunks
};

/// Called by the receiver: opens the slot for a message and returns the message's generation. Precondition: no other process can claim yet.
inline uint64_t open_split(SplitSlot& slot) {
    const uint64_t generation = (slot.claims.load(std::memory_order_relaxed) >> 16) + 1;
    slot.written.store(0, std::memory_order_relaxed);
    slot.failed.store(0, std::memory_order_relaxed);
    slot.claims.store(generation << 16, std::memory_order_release);
    return generation;
}

/// Claims the next chunk of `total` (at most kSplitChunks) from the front or the back. Returns -1 if all are claimed or the generation is
/// another message's.
inline int64_t claim_chunk(SplitSlot& slot, uint64_t generation, uint32_t total, bool from_back) {
    uint64_t seen = slot.claims.load(std::memory_order_acquire);
    for (;;) {
        const uint32_t front = seen >> 8 & 0xff, back = seen & 0xff;
        if (seen >> 16 != generation || front + back >= total) return -1;
        const uint64_t next = seen + (from_back ? 1 : uint64_t{1} << 8);
        if (slot.claims.compare_exchange_weak(seen, next, std::memory_order_acq_rel))
            return from_back ? total - 1 - back : front;
    }
}

inline uint32_t claimed_from_back(const SplitSlot& slot) {
    return static_cast<uint32_t>(slot.claims.load(std::memory_order_acquire) & 0xff);
}

}  // namespace starling::shm
