#include "rma/update_lock.h"

#include <unistd.h>

#include "base/barrier.h"
#include "base/process.h"

namespace starling::rma {

namespace {

/// Replaces the pid of a process whose pid other processes cannot use; such a process always counts as alive.
constexpr uint32_t kNoPid = 1u << 31;

bool has_died(uint32_t pid) { return pid != 0 && pid != kNoPid && neighbour_ended(static_cast<pid_t>(pid)); }

/// Number of tries before the holder is checked. A holder needs less than a time slice, so after these tries it has lost its core, or died.
constexpr uint32_t kTriesPerLook = 1024;

}  // namespace

void Guard::lock(uint32_t pid) {
    for (uint32_t tries = 1; !try_guard(holder, pid); ++tries) {
        __builtin_ia32_pause();
        if (tries % kTriesPerLook != 0) continue;
        uint32_t found = holder.load();
        if (has_died(found) && holder.compare_exchange_strong(found, pid)) return;
        usleep(50);
    }
}

UpdateLock::UpdateLock(Guard& guard, UpdateMark* marks, uint32_t processes, uint32_t me, uint32_t target)
    : guard_(&guard),
      marks_(marks),
      processes_(processes),
      me_(me),
      target_(target),
      pid_(knows_pids() ? static_cast<uint32_t>(getpid()) : kNoPid) {
    marks_[me_].pid.store(pid_, std::memory_order_relaxed);
    marks_[me_].can_have_barriers.store(can_have_barriers(), std::memory_order_relaxed);
}

bool UpdateLock::begin_one_carefully() const {
    count_single();
    return set_mark(marks_[me_].target, guard_->holder, target_);
}

bool UpdateLock::begin_one_quickly() const {
    if (uses_barriers_ && set_mark_quickly(marks_[me_].target, guard_->mode, target_)) [[likely]]
        return true;
    clear_mark(marks_[me_].target);
    count_single();
    // While the mode is quick, set the mark, if necessary with a barrier: taking the guard would end the mode for all other elements.
    return guard_->mode.load(std::memory_order_relaxed) == UpdateLockMode::quick && begin_one();
}

void UpdateLock::count_single() const {
    if (++singles_ % kPatience != 0) return;
    clear_mark(marks_[me_].target);  // now no holder of the guard waits for the steps below
    if (!uses_barriers_ && (is_registered_for_barriers() || has_one_thread() || singles_ >= kPatienceWithThreads))
        uses_barriers_ = register_for_barriers();
    if (uses_barriers_) begin_quick();
}

void UpdateLock::begin_quick() const {
    if (guard_->mode.load(std::memory_order_relaxed) == UpdateLockMode::quick) return;
    for (uint32_t who = 0; who < processes_; ++who)
        if (marks_[who].can_have_barriers.load(std::memory_order_relaxed) == 0) return;
    if (!try_guard(guard_->holder, pid_)) return;
    end_quick(guard_->mode, barrier_everywhere);
    guard_->mode.store(UpdateLockMode::quick, std::memory_order_release);
    guard_->unlock();
}

void UpdateLock::begin_all_slowly(bool has_guard) const {
    if (!has_guard) guard_->lock(pid_);
    end_quick(guard_->mode, barrier_everywhere);
    for (uint32_t who = 0; who < processes_; ++who) {
        UpdateMark& mark = marks_[who];
        for (uint32_t tries = 1; is_marked(mark.target, target_); ++tries) {
            __builtin_ia32_pause();
            if (tries % kTriesPerLook != 0) continue;
            if (has_died(mark.pid.load(std::memory_order_relaxed))) clear_mark(mark.target);
            usleep(50);
        }
    }
}

}  // namespace starling::rma
