// When others see what this process has stored into mapped memory. Stores become visible in the order in which they were made, and loads are
// carried out in theirs; only a load may overtake stores before it, which still wait in the core. So what a flush owes is that no
// later load of others' memory overtakes the stores before it. A fence does that, and takes a third of a short put's time; so it is left to the load,
// if one comes. Updates by one instruction, locks and calls of the kernel are fences themselves. A program that looks at memory by loads of its
// own calls MPI_Win_sync, which is a fence always.
//
// That is so on x86; elsewhere a flush would have to be a fence.
#pragma once

#include <atomic>

namespace starling::rma {

struct Order {
    bool stored = false;  ///< since the last flush
    bool owed = false;    ///< a fence, to the next load
};
/// Of whichever thread stored last: who comes after it has the library's lock from it, so sees its stores.
extern Order order;

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
/// An update may be made of plain stores; one that only looks is a load.
inline void before_update(bool looks) { looks ? before_load() : note_store(); }

}  // namespace starling::rma
