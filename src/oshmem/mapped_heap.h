// The fast path of every access: heap memory that is mapped in this process is accessed without a call into the runtime.
#pragma once

#include <cstring>

#include "shmem/runtime_abi.h"

namespace starling::oshmem {

using namespace shmem;

inline constexpr auto kDefault = shmem::kDefaultContext;
inline void* default_context() { return reinterpret_cast<void*>(kDefault); }

/// N bytes that are only copied, for elements of any type of this size.
template <size_t N>
struct ByteBlock {
    std::byte bytes[N];
};

/// Translates a PE's number in a context's team to its number in the world; returns -1 if the runtime must translate or check it.
inline int world_pe(const void* context, int pe) {
    if (reinterpret_cast<uintptr_t>(context) == kDefault) [[likely]]
        return pe;
    const auto* head = static_cast<const shmem::ContextHead*>(context);
    if (!head || static_cast<uint32_t>(pe) >= head->size) return -1;
    return head->first + pe * head->stride;
}

/// Returns the address of the PE's copy of `address` in this process; null if the runtime must carry out or check the access.
inline std::byte* reach(const void* address, size_t bytes, int pe) {
    shmem::Near& near = starling_shmem_near;
    const uint64_t into = reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(near.base);
    const uint64_t there = near.bytes.load(std::memory_order_relaxed);
    if (into >= there || bytes > there - into || static_cast<uint32_t>(pe) >= near.pes) [[unlikely]]
        return nullptr;
    std::byte* heap = __atomic_load_n(&near.heaps[pe], __ATOMIC_ACQUIRE);
    return heap ? heap + into : nullptr;
}
inline std::byte* reach(const void* context, const void* address, size_t bytes, int pe) {
    return reach(address, bytes, world_pe(context, pe));
}

/// Counts a read of mapped memory and makes progress at every 128th read. The program may read in a loop until another PE changes the
/// memory, and that PE may depend on this one's progress. Such a loop soon reaches 128 reads, and the cost per read is negligible.
inline void poll_after_load() {
    constexpr uint32_t kLooks = 128;
    std::atomic<uint32_t>& looks = starling_shmem_near.polls;
    const uint32_t so_far = looks.load(std::memory_order_relaxed) + 1;
    looks.store(so_far, std::memory_order_relaxed);
    if (so_far % kLooks == 0) [[unlikely]]
        starling_shmem_poll();
}

/// Records a store to a PE's memory; the next quiet wakes the PE if it waits.
inline void note_remote_store(int pe) {
    if (starling_shmem_near.stored.load(std::memory_order_relaxed) != pe) [[unlikely]]
        starling_shmem_stored(pe);
}

/// Wakes the PE if it waits, after a store that was also a full barrier.
inline void wake(int pe) {
    const std::atomic<uint32_t>* watching = starling_shmem_near.watching[pe];
    if (watching && watching->load(std::memory_order_relaxed) != 0) [[unlikely]]
        starling_shmem_wake(pe);
}

}  // namespace starling::oshmem
