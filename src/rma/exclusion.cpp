#include "rma/exclusion.h"

#include <unistd.h>

#include "base/process.h"

namespace starling::rma {

namespace {

bool has_died(uint32_t pid) { return pid != 0 && process_gone(static_cast<pid_t>(pid)); }

/// What others do here takes less than a slice, so who is at it so long has lost its core, or its life.
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

void Guard::unlock() { holder.store(0, std::memory_order_release); }

Exclusion::Exclusion(Guard& guard, Mark* marks, uint32_t processes, uint32_t me, uint32_t target)
    : guard_(&guard), marks_(marks), processes_(processes), me_(me), target_(target), pid_(static_cast<uint32_t>(getpid())) {
    marks_[me_].pid.store(pid_, std::memory_order_relaxed);
}

void Exclusion::begin_all() const {
    guard_->lock(pid_);
    for (uint32_t who = 0; who < processes_; ++who) {
        Mark& mark = marks_[who];
        for (uint32_t tries = 1; is_marked(mark.target, target_); ++tries) {
            __builtin_ia32_pause();
            if (tries % kTriesPerLook != 0) continue;
            if (has_died(mark.pid.load(std::memory_order_relaxed))) clear_mark(mark.target);
            usleep(50);
        }
    }
}

}  // namespace starling::rma
