// Memory order of accesses in mappings: when other processes see this process's stores.
//
// On x86, stores become visible in program order, and loads are carried out in program order. Only a load may overtake earlier stores,
// which still wait in the core. So a flush must ensure that no later load of other processes' memory overtakes the stores before the flush.
// A fence does that, but it takes a third of a short put's time, so it is left to the next load, if there is one. Atomic instructions,
// locks and system calls are fences themselves. A program that reads the memory by its own loads calls MPI_Win_sync, which always is a
// fence.
//
// On other processors a flush would have to be a fence.
#pragma once

#include <atomic>

namespace starling::rma {

struct MemoryOrder {
    bool stored = false;  ///< whether this process has stored into mapped memory since the last flush
    bool owed = false;    ///< whether a fence must precede the next load of mapped memory
};
/// One state serves all threads of the process, because it is used under the library's lock. A thread that acquires the lock sees the
/// stores of the thread that released it.
extern MemoryOrder order;

inline void note_store() { order.stored = true; }
inline void note_flush() {
    order.owed |= order.stored;
    order.stored = false;
}
inline void before_load() {
    if (!order.owed) [[likely]]
        return;
    order.owed = false;
    std::atomic_thread_fence(std::memory_order_seq_cst);
}
/// Prepares an update. It may consist of plain stores, so it counts as a store; an update that only reads (`looks`) counts as a load.
inline void before_update(bool looks) { looks ? before_load() : note_store(); }

}  // namespace starling::rma
