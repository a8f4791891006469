// The update lock: keeps updates of one target's memory apart, in memory that all processes of a host can access.
//
// An update of one element by one atomic instruction (a *single*) needs no protection from other singles. All other updates, above all
// those of many consecutive elements, are made under a guard with plain, wide instructions. To keep the two kinds apart, a single sets its
// process's mark before it reads the guard, and the holder of the guard waits for the marks that it finds. Each side writes its word before
// it reads the other's, so at least one of the two sees the other.
//
// This order requires a barrier, which costs a single as much as the update itself. So after kPatience singles the mode of a target's
// memory becomes *quick*. A single then stores its mark without a barrier, reads the mode, and accesses the memory if the mode still is
// quick. A holder of the guard ends the mode, makes all other processes execute a barrier (base/barrier.h, a microsecond and more), and
// only then reads the marks.
//
// Proof that no single is overlooked. Let T be the time at which a single found the mode quick, after its mark in its own program order.
//
// 1. At T no holder of the guard is accessing the memory. A holder accesses it only after it has ended the mode, and the mode starts again
// only by a holder that does not access the memory.
//
// 2. A holder that accesses the memory after T first finds the mode ended after T, by itself or by an earlier holder. The process that
// ended the mode stored this before it made the single's process execute a barrier. Had that process executed the barrier before T, it
// would have found the mode ended. So it executed the barrier after T, and its mark, stored before T, is visible from then on.
//
// While the barrier is in progress the mode is `ending`; a process that takes the guard from a dead holder in this state repeats the
// barrier. A single that finds the mode ended clears its mark and uses the careful path. The quick mode starts after kPatience careful
// singles of one process, if all processes with a mark can issue barriers. So changes of mode cost each single a nanosecond, and cost bulk
// updates nothing.
#pragma once

#include <atomic>
#include <cstdint>

namespace starling::rma {

enum class UpdateLockMode : uint32_t { careful, quick, ending };

/// A lock that records its holder, so that a dead holder does not keep it. Held for a few hundred ns.
struct Guard {
    std::atomic<uint32_t> holder;      ///< process id of the holder; 0: free
    std::atomic<UpdateLockMode> mode;  ///< mode of the target's memory; only the guard's holder changes it
    void lock(uint32_t pid);
    void unlock() { holder.store(0, std::memory_order_release); }
};

/// One process's mark: the target whose memory it is changing by an atomic instruction.
struct alignas(64) UpdateMark {
    std::atomic<uint32_t> target;             ///< index of the target + 1; 0: none
    std::atomic<uint32_t> pid;                ///< pid of the process, set once it uses the update lock
    std::atomic<uint32_t> can_have_barriers;  ///< whether the process can issue barriers, and so end the quick mode
};

// The steps are templates over the types of the shared words, so that tests can try every interleaving.

/// Sets this process's mark for a single (an update by one atomic instruction). Returns false, with the mark cleared, if the guard is held.
template <class Word, class Holder>
bool set_mark(Word& mine, Holder& holder, uint32_t target) {
    mine.store(target + 1, std::memory_order_seq_cst);
    if (holder.load(std::memory_order_seq_cst) == 0) [[likely]]
        return true;
    mine.store(0, std::memory_order_release);
    return false;
}

/// Sets the mark of a single in the quick mode, for a process that executes the holders' barriers. Returns false if the mode has ended; the
/// mark may be set then.
template <class Word, class Modes>
bool set_mark_quickly(Word& mine, Modes& mode, uint32_t target) {
    mine.store(target + 1, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    return mode.load(std::memory_order_acquire) == UpdateLockMode::quick;
}

template <class Word>
void clear_mark(Word& mine) {
    mine.store(0, std::memory_order_release);
}

/// Returns whether the mark delays the holder of the guard.
template <class Word>
bool is_marked(Word& mark, uint32_t target) {
    return mark.load(std::memory_order_seq_cst) == target + 1;
}

template <class Holder>
bool try_guard(Holder& holder, uint32_t pid) {
    decltype(holder.load()) nobody = 0;
    return holder.compare_exchange_strong(nobody, pid, std::memory_order_seq_cst);
}

/// Ends the quick mode, in which processes set their marks without a barrier, and makes all of them execute one. The process that holds the
/// guard calls it; afterwards it sees all marks.
template <class Modes, class Barrier>
void end_quick(Modes& mode, Barrier&& barrier_everywhere) {
    if (mode.load(std::memory_order_relaxed) == UpdateLockMode::careful) return;
    mode.store(UpdateLockMode::ending, std::memory_order_relaxed);
    barrier_everywhere();
    mode.store(UpdateLockMode::careful, std::memory_order_release);
}

/// One process's view of the update lock of one target. A process has one per target, which its threads use in turns.
class UpdateLock {
  public:
    /// `marks` has one mark for each of the `processes`; `me` is the index of this process's mark.
    UpdateLock(Guard& guard, UpdateMark* marks, uint32_t processes, uint32_t me, uint32_t target);

    /// Begins a single update, by one atomic instruction. Returns false if the guard is held; the caller then uses begin_all().
    bool begin_one() const {
        if (uses_barriers_ && set_mark_quickly(marks_[me_].target, guard_->mode, target_)) [[likely]]
            return true;
        return begin_one_carefully();
    }
    /// A variant of begin_one() for callers to which begin_all() costs no more than the careful path. Returns false if they should use
    /// begin_all().
    bool begin_one_quickly() const;
    void end_one() const { clear_mark(marks_[me_].target); }
    /// Begins an update that is not one atomic instruction. Until end_all() only the caller changes elements.
    void begin_all() const {
        const bool mine = try_guard(guard_->holder, pid_);
        if (!mine || guard_->mode.load(std::memory_order_relaxed) != UpdateLockMode::careful || any_marked())
            begin_all_slowly(mine);
    }
    void end_all() const { guard_->unlock(); }

    /// Number of singles that one process makes with a barrier before it starts the quick mode, and before a process with several threads
    /// registers for barriers.
    static constexpr uint32_t kPatience = 4096, kPatienceWithThreads = 1 << 22;

  private:
    bool any_marked() const {
        for (uint32_t who = 0; who < processes_; ++who)
            if (is_marked(marks_[who].target, target_)) return true;
        return false;
    }
    void begin_all_slowly(bool has_guard) const;
    bool begin_one_carefully() const;
    void count_single() const;
    void begin_quick() const;

    Guard* guard_;
    UpdateMark* marks_;
    uint32_t processes_, me_, target_, pid_;
    mutable uint32_t singles_ = 0;  ///< number of singles so far that were not made in the quick mode
    mutable bool uses_barriers_ = false;
};

}  // namespace starling::rma
