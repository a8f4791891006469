// The lock table of a window on one host: which process holds which lock, in memory that all its processes there can access. A process
// acquires and releases its neighbours' locks without them. For processes of other hosts the target does it (remote_lock_server.h).
//
// Only the holder records what it holds, so the others know what to release after its death. No function waits: a process that cannot have
// a lock registers as waiting, and is rung when it may try again.
//
// A shared lock is a mark in a place that only its holder writes; an exclusive lock is a word that names its holder. Each side writes
// before it reads the other's, so at least one of two conflicting processes sees the other. A process that has written the word and finds
// marks keeps the word, which keeps out new marks. The word says whether its holder has the lock or waits for it. A process that holds
// other locks must not wait for one that only waits, because that one may wait for the process itself.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "rma/update_lock.h"

namespace starling::window {

class LockTable {
  public:
    /// Numbers by which the table names the holder of an exclusive lock: a process of this host, or a process of another host, for which
    /// the target acquires the lock.
    static constexpr uint32_t holder_here(uint32_t place) { return place + 1; }
    static constexpr uint32_t holder_afar(int rank) { return 0x80000000u | static_cast<uint32_t>(rank); }

    static size_t bytes(uint32_t processes);
    /// `memory` is all 0 at first, and outlives the table. The processes of the host are numbered from 0; this number is called their
    /// place.
    LockTable() = default;
    LockTable(void* memory, uint32_t processes);

    /// Try to acquire a lock. Each returns whether the lock is held now, by this call or an earlier one. If not, call again later.
    bool try_shared(uint32_t who, uint32_t target);
    bool try_exclusive(uint32_t holder, uint32_t target);
    void release_shared(uint32_t who, uint32_t target);
    void release_exclusive(uint32_t target);
    /// Cancels an acquisition that try_exclusive() may have begun for `holder`.
    void withdraw_exclusive(uint32_t holder, uint32_t target);
    /// Acquires a shared lock for a process of another host; only the target calls it. With `past_waiting` it may overtake an exclusive
    /// lock that a process waits for but does not hold yet.
    bool try_shared_for_another(uint32_t target, bool past_waiting = false);
    void release_shared_for_another(uint32_t target);

    /// Value of `target` in begin_wait() for a process that waits for several targets.
    static constexpr uint32_t kEveryTarget = ~uint32_t{0} - 1;
    /// Returns the place (number on this host) of a process that holds a lock of `target`, or is acquiring one; -1: none is visible.
    int holder(uint32_t target) const;

    /// begin_wait() records that `who` waits for a lock of `target`, so that its doorbell is rung when one is released; end_wait() clears
    /// the record.
    void begin_wait(uint32_t who, uint32_t target) { waits_[who].store(target + 1); }
    void end_wait(uint32_t who) { waits_[who].store(0); }
    /// Sets whether the target's doorbell must be rung when a lock is released, because the target has pending requests of other hosts.
    void set_pending(uint32_t target, bool pending) { slots_[target].pending.store(pending); }
    /// Visits the processes whose doorbells must be rung after a lock of `target` was released.
    template <class F>
    void each_waiter(uint32_t target, F&& visit) const {
        std::atomic_thread_fence(std::memory_order_seq_cst);
        for (uint32_t holder = 0; holder < processes_; ++holder) {
            const uint32_t wait = waits_[holder].load(std::memory_order_relaxed);
            if (wait == target + 1 || wait == kEveryTarget + 1) visit(holder);
        }
        if (slots_[target].pending.load(std::memory_order_relaxed)) visit(target);
    }

    /// Lifetime of the table's memory: its creator frees it after each process of the host has left. A process leaves when it has called
    /// MPI_Win_free, holds no lock, and no process of another host holds a lock through it. From then on it does not access the table.
    void leave(uint32_t who) { slots_[who].left.store(1, std::memory_order_release); }
    bool has_left(uint32_t who) const { return slots_[who].left.load(std::memory_order_acquire) != 0; }

    /// Releases the shared locks of all targets that `holder` has, and visits the processes whose doorbells must be rung.
    template <class F>
    void release_all_shared(uint32_t holder, F&& visit) {
        for (uint32_t target = 0; target < processes_; ++target) release_shared(holder, target);
        std::atomic_thread_fence(std::memory_order_seq_cst);
        for (uint32_t other = 0; other < processes_; ++other)
            if (waits_[other].load(std::memory_order_relaxed) != 0 || slots_[other].pending.load(std::memory_order_relaxed))
                visit(other);
    }

    /// Releases all locks that a dead process holds or was acquiring.
    void bury(uint32_t dead);
    /// Releases the locks of each process that holds a lock of `target`, or is acquiring one, and is dead according to `is_dead`. Returns
    /// whether there was any such process.
    template <class F>
    bool bury_holders(uint32_t target, F&& is_dead) {
        bool any = false;
        for (uint32_t holder = 0; holder < processes_; ++holder) {
            const bool has =
                mark(holder, target).load() != 0 || (slots_[target].exclusive.load() & ~kHad) == holder_here(holder);
            if (has && is_dead(holder)) bury(holder), any = true;
        }
        return any;
    }

    /// Returns the update lock of the target's memory for this process, whose number on the host is `me`. The first call registers the
    /// process with the update lock.
    rma::UpdateLock exclusion(uint32_t me, uint32_t target) const;

  private:
    struct alignas(64) LockSlot {
        std::atomic<uint32_t> exclusive;  ///< process that holds the exclusive lock (with kHad) or waits for it; 0: none
        std::atomic<uint32_t> others;     ///< number of shared locks of processes on other hosts
        std::atomic<uint32_t> pending;
        std::atomic<uint32_t> left;
        rma::Guard guard;
    };
    static constexpr uint32_t kHad = 0x40000000u;
    bool any_shared(uint32_t target) const;
    std::atomic<uint8_t>& mark(uint32_t who, uint32_t target) { return marks_[target * processes_ + who]; }

    uint32_t processes_ = 0;
    LockSlot* slots_ = nullptr;
    rma::UpdateMark* updating_ = nullptr;
    std::atomic<uint32_t>* waits_ = nullptr;
    std::atomic<uint8_t>* marks_ = nullptr;
};

}  // namespace starling::window
