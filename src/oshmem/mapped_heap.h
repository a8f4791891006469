// What every access tries first: memory of the heap that is mapped here, without a call into the runtime.
#pragma once

#include <cstring>

#include "shmem/runtime_abi.h"

namespace starling::oshmem {

using namespace shmem;

inline constexpr auto kDefault = shmem::kDefaultContext;
inline void* default_context() { return reinterpret_cast<void*>(kDefault); }

/// Elements that are only moved: of so many bytes.
template <size_t N>
struct Block {
    std::byte bytes[N];
};

/// The PE's number in the world, of a context that is not invalid; -1: the runtime looks.
inline int world_pe(const void* context, int pe) {
    if (reinterpret_cast<uintptr_t>(context) == kDefault) [[likely]]
        return pe;
    const auto* head = static_cast<const shmem::ContextHead*>(context);
    if (!head || static_cast<uint32_t>(pe) >= head->size) return -1;
    return head->first + pe * head->stride;
}

/// Where that PE's part of the heap is mapped; null: the runtime takes the access, or finds out what is wrong with it.
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

/// The program has looked at memory, perhaps to do so until another PE has changed it, which may have to come by this one: so now and then what can be
/// moved is moved. Often enough for who waits, seldom enough to cost a look nothing.
inline void looked() {
    constexpr uint32_t kLooks = 128;
    std::atomic<uint32_t>& looks = starling_shmem_near.looks;
    const uint32_t so_far = looks.load(std::memory_order_relaxed) + 1;
    looks.store(so_far, std::memory_order_relaxed);
    if (so_far % kLooks == 0) [[unlikely]]
        starling_shmem_poll();
}

/// There was a store to that PE's memory: by the next quiet it is woken if it waits.
inline void stored(int pe) {
    if (starling_shmem_near.stored.load(std::memory_order_relaxed) != pe) [[unlikely]]
        starling_shmem_stored(pe);
}

/// There was a store that is a full barrier, too.
inline void wake(int pe) {
    const std::atomic<uint32_t>* watching = starling_shmem_near.watching[pe];
    if (watching && watching->load(std::memory_order_relaxed) != 0) [[unlikely]]
        starling_shmem_wake(pe);
}

}  // namespace starling::oshmem
