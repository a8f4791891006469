// How updates of one target's memory keep out of each other's way, in memory that all processes of a host can reach.
//
// An update of one element that the processor does by itself (a single) needs nobody's leave among others of its kind. All else, many elements
// in a row above all, is done under a guard by plain, wide instructions. So that the two don't meet, who begins a single
// sets a mark of its own before it looks at the guard; who has taken the guard waits for the marks that it finds. The one is
// set before the other is looked at, so of two that meet at least one sees the other.
//
// To set before looking takes a barrier, which costs a single as much as the update itself. So where a target's memory has had singles
// for a while its mode is *quick*: a single stores its mark plainly, looks at the mode, and is at the memory if that still is quick. Who has
// the guard then ends the mode, has all others pass a barrier (base/barrier.h, a microsecond and more), and looks at the marks after that. Why
// no single is overlooked: let T be when it found the mode quick, behind its mark in its own order.
//   1. At T nobody is at the memory under the guard: who has the guard is there only after it has ended the mode, and the mode begins anew only by
//      one who has the guard and is not there.
//   2. Whoever comes to the memory under the guard after T finds, before that, the mode ended after T, by itself or by one before it. He
//      who ended it stored that before the barrier which he had the single's process pass. Had that process passed it before T, it would have
//      found the mode ended. So it passed it after T, and its mark, which was stored before T, is to be seen since then.
// A mode that is being ended has a value of its own until the barrier is over: who takes the guard from one that died in between does it again.
// A single that finds the mode ended takes its mark back and goes the careful way. The mode begins after kPatience careful singles of one
// process, if all processes that have a mark can have others pass a barrier, so going to and fro costs singles a nanosecond each, and
// memory that is changed in bulk costs nothing.
#pragma once

#include <atomic>
#include <cstdint>

namespace starling::rma {

enum class Mode : uint32_t { careful, quick, ending };

/// A lock that knows its holder, so that one who dies in it does not keep it. Held for a few hundred ns.
struct Guard {
    std::atomic<uint32_t> holder;  ///< 0: nobody; else a process id
    std::atomic<Mode> mode;        ///< changed by the holder only
    void lock(uint32_t pid);
    void unlock() { holder.store(0, std::memory_order_release); }
};

/// A process's own: which target's memory it changes now by an instruction of the processor's.
struct alignas(64) UpdateMark {
    std::atomic<uint32_t> target;             ///< its place + 1
    std::atomic<uint32_t> pid;                ///< of the process, from when on it takes part
    std::atomic<uint32_t> can_have_barriers;  ///< it can end the quick mode
};

// The steps, over the types of the shared words, so that tests can try every order of them.

/// False if somebody has the guard: then nothing is marked.
template <class Word, class Holder>
bool set_mark(Word& mine, Holder& holder, uint32_t target) {
    mine.store(target + 1, std::memory_order_seq_cst);
    if (holder.load(std::memory_order_seq_cst) == 0) [[likely]]
        return true;
    mine.store(0, std::memory_order_release);
    return false;
}

/// The same in the quick mode, by one who hears barriers. False if it is over: then the mark may be set.
template <class Word, class Modes>
bool set_mark_quickly(Word& mine, Modes& mode, uint32_t target) {
    mine.store(target + 1, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    return mode.load(std::memory_order_acquire) == Mode::quick;
}

template <class Word>
void clear_mark(Word& mine) {
    mine.store(0, std::memory_order_release);
}

/// Whether it is in the way of whoever has the guard.
template <class Word>
bool is_marked(Word& mark, uint32_t target) {
    return mark.load(std::memory_order_seq_cst) == target + 1;
}

template <class Holder>
bool try_guard(Holder& holder, uint32_t pid) {
    decltype(holder.load()) nobody = 0;
    return holder.compare_exchange_strong(nobody, pid, std::memory_order_seq_cst);
}

/// By the holder of the guard, before it looks at the marks.
template <class Modes, class Barrier>
void end_quick(Modes& mode, Barrier&& barrier_everywhere) {
    if (mode.load(std::memory_order_relaxed) == Mode::careful) return;
    mode.store(Mode::ending, std::memory_order_relaxed);
    barrier_everywhere();
    mode.store(Mode::careful, std::memory_order_release);
}

/// One process's view of what excludes updates of one target from each other. Of that one target it has one, whose threads take turns.
class UpdateLock {
  public:
    /// Processes have a mark each, in the order of their places; `me` is that of this one.
    UpdateLock(Guard& guard, UpdateMark* marks, uint32_t processes, uint32_t me, uint32_t target);

    /// Around one instruction of the processor's. False if somebody is at the memory: then begin_all().
    bool begin_one() const {
        if (hears_ && set_mark_quickly(marks_[me_].target, guard_->mode, target_)) [[likely]]
            return true;
        return begin_one_carefully();
    }
    /// The same where begin_all() is as good as the careful way; false if it is to be that.
    bool begin_one_quickly() const;
    void end_one() const { clear_mark(marks_[me_].target); }
    /// Around anything else. Nobody but the caller changes elements then.
    void begin_all() const {
        const bool mine = try_guard(guard_->holder, pid_);
        if (!mine || guard_->mode.load(std::memory_order_relaxed) != Mode::careful || any_marked()) begin_all_slowly(mine);
    }
    void end_all() const { guard_->unlock(); }

    /// Careful singles of one process until the mode is quick, and until one with several threads hears barriers.
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
    mutable uint32_t singles_ = 0;  ///< that were careful
    mutable bool hears_ = false;
};

}  // namespace starling::rma
