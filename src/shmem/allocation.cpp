// shmem_malloc and related functions. They are collective, but except for a barrier all work is local.
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "base/config.h"
#include "base/error.h"
#include "base/page_size.h"
#include "shmem/access.h"
#include "shmem/collective.h"
#include "shmem/entry.h"
#include "shmem/pe_table.h"

namespace starling::shmem {

namespace {

/// Freed memory of at least kGiveBack bytes is returned to the system.
constexpr uint64_t kGiveBack = 1u << 20;

void synchronize() {
    quiet_all();
    if (barrier(*world().everyone)) complain_of_failure();
}

/// Provides memory for all allocations on all PEs; returns false if a PE's system has not enough. Only memory that all PEs have counts as
/// present, so that all PEs take the same branch in the next call.
bool back_with_memory() {
    const uint64_t needed = needed_heap();
    if (needed <= world().there) {
        synchronize();
        return true;
    }
    quiet_all();
    if (!all_agree(*world().everyone, grow_heap(needed))) return false;
    world().there = needed;
    return true;
}

void publish_to_entries() {
    const bool looked_at = config().check || config().profile;
    starling_shmem_near.bytes.store(looked_at ? 0 : std::min(world().heap.high_water(), world().there),
                                    std::memory_order_release);
}

uint64_t offset_of(const void* memory) {
    return static_cast<uint64_t>(static_cast<const std::byte*>(memory) - world().pages.data());
}

void free_range(uint64_t offset, uint64_t bytes) {
    if (bytes < kGiveBack) return;
    const uint64_t first = (offset + kPage - 1) / kPage * kPage, last = (offset + bytes) / kPage * kPage;
    madvise(world().pages.data() + first, last - first, MADV_REMOVE);
}

/// Returns whether every PE's heap begins at a multiple of `alignment`; if address space is short, it may not.
bool heap_is_aligned(uint64_t alignment) {
    return alignment <= kPage ||
           all_agree(*world().everyone, reinterpret_cast<uintptr_t>(world().pages.data()) % alignment == 0);
}

std::byte* allocate(uint64_t alignment, uint64_t bytes) {
    if (!heap_is_aligned(alignment)) {
        mention(
            "the start of the symmetric heap is not a multiple of %llu, so it allows no such alignment; a smaller "
            "SHMEM_SYMMETRIC_SIZE may help",
            static_cast<unsigned long long>(alignment));
        return nullptr;
    }
    const uint64_t high = world().heap.high_water(), offset = world().heap.allocate(bytes, alignment);
    if (offset == Heap::kNone) {
        mention("%llu bytes do not fit in the symmetric heap of %llu bytes: free memory, or set SHMEM_SYMMETRIC_SIZE to more",
                static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(world().heap.limit()));
        return nullptr;
    }
    if (!back_with_memory()) {
        world().heap.free(offset);
        world().heap.restore_high_water(high);
        mention("a PE's host does not have enough memory for %llu more bytes of the symmetric heap",
                static_cast<unsigned long long>(bytes));
        return nullptr;
    }
    publish_to_entries();
    return world().pages.data() + offset;
}

void check_block(const void* memory) {
    if (world().heap.bytes_at(offset_of(memory)) == 0) complain("%p is not the start of an allocation; was it freed?", memory);
}

}  // namespace

extern "C" {

void* starling_shmem_allocate(const char* name, size_t alignment, size_t bytes, bool clear) {
    const ShmemCall call(name);
    check_alike_everywhere("the number of bytes", bytes);
    check_alike_everywhere("the alignment", alignment);
    if (bytes == 0 || (alignment & (alignment - 1)) != 0) return nullptr;
    const uint64_t before = world().heap.high_water();
    std::byte* memory = allocate(alignment, bytes);
    if (!memory || !clear) return memory;
    // Memory that was never used is zero already. Other PEs may write as soon as they have left the barrier of allocate(), so a second
    // barrier follows the memset.
    const uint64_t offset = offset_of(memory);
    if (offset < before) std::memset(memory, 0, std::min<uint64_t>(bytes, before - offset));
    synchronize();
    return memory;
}

void* starling_shmem_reallocate(const char* name, void* memory, size_t bytes) {
    if (!memory) return starling_shmem_allocate(name, 0, bytes, false);
    const ShmemCall call(name);
    check_block(memory);
    check_alike_everywhere("the offset of the resized block in the heap", offset_of(memory));
    check_alike_everywhere("the number of bytes", bytes);
    const uint64_t offset = offset_of(memory), had = world().heap.bytes_at(offset), high = world().heap.high_water();
    synchronize();
    if (bytes == 0) {
        world().heap.free(offset);
        return nullptr;
    }
    if (world().heap.resize(offset, bytes)) {
        if (back_with_memory()) {
            publish_to_entries();
            return memory;
        }
        world().heap.resize(offset, had);
        world().heap.restore_high_water(high);
        return nullptr;
    }
    std::byte* moved = allocate(0, bytes);
    if (!moved) return nullptr;
    std::memcpy(moved, memory, std::min<uint64_t>(had, bytes));
    synchronize();
    world().heap.free(offset);
    return moved;
}

void starling_shmem_free(const char* name, void* memory) {
    const ShmemCall call(name);
    if (!memory) return;
    check_block(memory);
    const uint64_t offset = offset_of(memory);
    check_alike_everywhere("the offset of the freed block in the heap", offset);
    synchronize();
    free_range(offset, world().heap.bytes_at(offset));
    world().heap.free(offset);
}
}  // extern "C"

}  // namespace starling::shmem
