// How updates of one target's memory keep out of each other's way, in memory that all processes of a host can reach.
//
// An update of one element that the processor does by itself needs nobody's leave among others of its kind. All else, many elements in
// a row above all, is done under a guard by plain, wide instructions. So that the two don't meet, who begins one of the first kind
// sets a mark of its own before it looks at the guard; who has taken the guard waits for the marks that it finds. The one is
// set before the other is looked at, so of two that meet at least one sees the other.
#pragma once

#include <atomic>
#include <cstdint>

namespace starling::rma {

/// A lock that knows its holder, so that one who dies in it does not keep it. Held for a few hundred ns.
struct Guard {
    std::atomic<uint32_t> holder;  ///< 0: nobody; else a process id
    void lock(uint32_t pid);
    void unlock();
};

/// A process's own: which target's memory it changes now by an instruction of the processor's.
struct alignas(64) Mark {
    std::atomic<uint32_t> target;  ///< its place + 1
    std::atomic<uint32_t> pid;     ///< of the process, from when on it takes part
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

/// One process's view of what excludes updates of one target from each other. Cheap to copy.
class Exclusion {
  public:
    /// Processes have a mark each, in the order of their places; `me` is that of this one.
    Exclusion(Guard& guard, Mark* marks, uint32_t processes, uint32_t me, uint32_t target);

    /// Around one instruction of the processor's. False if somebody is at the memory: then begin_all().
    bool begin_one() const { return set_mark(marks_[me_].target, guard_->holder, target_); }
    void end_one() const { clear_mark(marks_[me_].target); }
    /// Around anything else. Nobody but the caller changes elements then.
    void begin_all() const;
    void end_all() const { guard_->unlock(); }

  private:
    Guard* guard_;
    Mark* marks_;
    uint32_t processes_, me_, target_, pid_;
};

}  // namespace starling::rma
