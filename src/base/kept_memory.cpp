#include "base/kept_memory.h"

#include <atomic>
#include <cstdlib>
#include <exception>
#include <new>

#include "base/current_function.h"
#include "base/error.h"
#include "base/state.h"

namespace starling {

STARLING_STATE std::atomic<int> detail::reserve_users = 0;
STARLING_STATE std::atomic<bool> detail::reserve_short = false;

namespace {

// Size and number of the reserved blocks. From a larger size on the allocator would return freed memory to the system at once, and a freed
// block could not serve the next allocation.
constexpr size_t kBlock = 16 << 10, kBlocks = 8;
// Atomic, because a thread without the library's lock may allocate memory too.
STARLING_STATE std::atomic<void*> blocks[kBlocks];
STARLING_STATE std::atomic<int> scopes = 0;
STARLING_STATE std::atomic<bool> left = false;
STARLING_STATE std::atomic<bool> keeps = false;  ///< whether a scope has begun at any time
STARLING_STATE std::new_handler before = nullptr;

/// Frees one block of the reserve, so that `new` can retry its allocation: this is the new handler.
void free_block() {
    if (KeptMemory::is_open() || detail::reserve_users.load(std::memory_order_relaxed) > 0)
        for (auto& block : blocks)
            if (void* mine = block.exchange(nullptr, std::memory_order_seq_cst)) {
                detail::reserve_short.store(true, std::memory_order_seq_cst);
                return std::free(mine);
            }
    if (!before) throw std::bad_alloc();
    before();
}

}  // namespace

KeptMemory::KeptMemory() : exceptions_(std::uncaught_exceptions()) {
    if (scopes.fetch_add(1, std::memory_order_relaxed) > 0) return;
    left.store(false, std::memory_order_relaxed);
    fill();
}

KeptMemory::~KeptMemory() {
    if (std::uncaught_exceptions() > exceptions_) left.store(true, std::memory_order_relaxed);
    if (scopes.fetch_sub(1, std::memory_order_relaxed) == 1) fill();
}

void KeptMemory::fill() {
    keeps.store(true, std::memory_order_relaxed);
    // Before the blocks are looked at: another thread may use one that has been looked at already.
    detail::reserve_short.store(false, std::memory_order_seq_cst);
    for (auto& block : blocks) {
        if (block.load(std::memory_order_seq_cst)) continue;
        void* const memory = std::malloc(kBlock);
        block.store(memory, std::memory_order_release);
        if (!memory) detail::reserve_short.store(true, std::memory_order_relaxed);
    }
    if (std::get_new_handler() != free_block) before = std::set_new_handler(free_block);
}

bool KeptMemory::is_short() {
    if (!keeps.load(std::memory_order_relaxed)) return false;
    for (const auto& block : blocks)
        if (!block.load(std::memory_order_relaxed)) return true;
    return false;
}

bool KeptMemory::is_open() { return scopes.load(std::memory_order_relaxed) > 0; }

void KeptMemory::mark_left() { left.store(true, std::memory_order_relaxed); }

bool KeptMemory::was_left() { return left.load(std::memory_order_relaxed); }

void KeptMemory::end() {
    panic("%s: out of memory in a call for which other processes wait, so this process ends: provide more memory, or use less",
          calling ? calling : "MPI");
}

void* allocate_zeros(size_t count, size_t bytes) {
    for (;;) {
        if (void* memory = std::calloc(count, bytes)) return memory;
        const std::new_handler handler = std::get_new_handler();
        if (!handler) throw std::bad_alloc();
        handler();
    }
}

}  // namespace starling
