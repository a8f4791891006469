// The board of a window on one host: who holds which lock, in memory that all its processes there can reach. A process takes
// and gives back locks of its neighbours without them; for those of other hosts the target does it.
//
// What is held is written down by its holder alone, so when it has died the others know what to take back. Nobody waits here: who
// can't have a lock says that it waits, and is rung when it may look again.
//
// A shared lock is a mark in a place of its holder's own; an exclusive lock is a word that names its holder. The one is set before
// the other is looked at, on both sides, so one of two who want what excludes each other sees the other. Who has set the word
// and finds marks keeps it, and new marks keep out. The word says whether its holder has the lock or waits for it, since a process
// that holds other locks may not wait for one that waits: that may wait for the process itself.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "rma/update_lock.h"

namespace starling::window {

class LockTable {
  public:
    /// Holders of exclusive locks: processes of the host, and those of others, for whom the target takes them.
    static constexpr uint32_t holder_here(uint32_t place) { return place + 1; }
    static constexpr uint32_t holder_afar(int rank) { return 0x80000000u | static_cast<uint32_t>(rank); }

    static size_t bytes(uint32_t processes);
    /// `memory` is all 0 at first, and outlives the board. Processes of the host count from 0.
    LockTable() = default;
    LockTable(void* memory, uint32_t processes);

    /// Each gives whether the lock is had now, by this call or one before; if not, ask again.
    bool try_shared(uint32_t who, uint32_t target);
    bool try_exclusive(uint32_t holder, uint32_t target);
    void release_shared(uint32_t who, uint32_t target);
    void release_exclusive(uint32_t target);
    /// Gives up what try_exclusive() may have begun for `holder`.
    void withdraw_exclusive(uint32_t holder, uint32_t target);
    /// For a process of another host; by the target only.
    /// `past_waiting`: an exclusive lock that is waited for does not keep it out, only one that is had.
    bool try_shared_for_another(uint32_t target, bool past_waiting = false);
    void release_shared_for_another(uint32_t target);

    /// Of a process that waits for several.
    static constexpr uint32_t kEveryTarget = ~uint32_t{0} - 1;
    /// The place of a process of this host that has a lock of `target`, or is about to have; -1: none is to be seen.
    int holder(uint32_t target) const;

    /// `who` waits for a lock of `target` from now on, and has to be rung when one is given back; again: no more.
    void begin_wait(uint32_t who, uint32_t target) { waits_[who].store(target + 1); }
    void end_wait(uint32_t who) { waits_[who].store(0); }
    /// Whether the target has locks to take for others, and has to be rung.
    void set_pending(uint32_t target, bool pending) { slots_[target].pending.store(pending); }
    /// Visits those who have to be rung after a lock of `target` was given back.
    template <class F>
    void each_waiter(uint32_t target, F&& visit) const {
        std::atomic_thread_fence(std::memory_order_seq_cst);
        for (uint32_t who = 0; who < processes_; ++who) {
            const uint32_t wait = waits_[who].load(std::memory_order_relaxed);
            if (wait == target + 1 || wait == kEveryTarget + 1) visit(who);
        }
        if (slots_[target].pending.load(std::memory_order_relaxed)) visit(target);
    }

    /// The lifetime of the board's memory. Its maker frees it, and only after each process of the host has left: a process leaves when it
    /// has called MPI_Win_free, holds no lock, and no process of another host holds one by its help. From then on it does not touch the board.
    void leave(uint32_t who) { slots_[who].left.store(1, std::memory_order_release); }
    bool has_left(uint32_t who) const { return slots_[who].left.load(std::memory_order_acquire) != 0; }

    /// Gives back the shared locks of all targets that `who` has, and visits those who have to be rung.
    template <class F>
    void release_all_shared(uint32_t who, F&& visit) {
        for (uint32_t target = 0; target < processes_; ++target) release_shared(who, target);
        std::atomic_thread_fence(std::memory_order_seq_cst);
        for (uint32_t other = 0; other < processes_; ++other)
            if (waits_[other].load(std::memory_order_relaxed) != 0 || slots_[other].pending.load(std::memory_order_relaxed))
                visit(other);
    }

    /// Takes back all that a dead process holds or was about to take.
    void bury(uint32_t dead);
    /// Whether somebody of whom `is_dead` says so has a part in a lock of `target`; buries them.
    template <class F>
    bool bury_holders(uint32_t target, F&& is_dead) {
        bool any = false;
        for (uint32_t who = 0; who < processes_; ++who) {
            const bool has = mark(who, target).load() != 0 || (slots_[target].exclusive.load() & ~kHad) == holder_here(who);
            if (has && is_dead(who)) bury(who), any = true;
        }
        return any;
    }

    /// How this process, at the place `me`, keeps its updates of the target's memory apart from others'. It takes part with the first call.
    rma::UpdateLock exclusion(uint32_t me, uint32_t target) const;

  private:
    struct alignas(64) Slot {
        std::atomic<uint32_t> exclusive;  ///< who has it (with kHad), or waits for those with shared locks; 0: nobody
        std::atomic<uint32_t> others;     ///< shared locks of processes of other hosts
        std::atomic<uint32_t> pending;
        std::atomic<uint32_t> left;
        rma::Guard guard;
    };
    static constexpr uint32_t kHad = 0x40000000u;
    bool any_shared(uint32_t target) const;
    std::atomic<uint8_t>& mark(uint32_t who, uint32_t target) { return marks_[target * processes_ + who]; }

    uint32_t processes_ = 0;
    Slot* slots_ = nullptr;
    rma::UpdateMark* updating_ = nullptr;
    std::atomic<uint32_t>* waits_ = nullptr;
    std::atomic<uint8_t>* marks_ = nullptr;
};

}  // namespace starling::window
