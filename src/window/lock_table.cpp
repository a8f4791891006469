#include "window/lock_table.h"

namespace starling::window {

size_t LockTable::bytes(uint32_t processes) {
    const size_t n = processes;
    return n * (sizeof(LockSlot) + sizeof(rma::UpdateMark)) + n * sizeof(std::atomic<uint32_t>) + n * n;
}

LockTable::LockTable(void* memory, uint32_t processes)
    : processes_(processes),
      slots_(static_cast<LockSlot*>(memory)),
      updating_(reinterpret_cast<rma::UpdateMark*>(slots_ + processes)),
      waits_(reinterpret_cast<std::atomic<uint32_t>*>(updating_ + processes)),
      marks_(reinterpret_cast<std::atomic<uint8_t>*>(waits_ + processes)) {}

bool LockTable::try_shared(uint32_t who, uint32_t target) {
    LockSlot& slot = slots_[target];
    if (mark(who, target).load(std::memory_order_relaxed) != 0) return true;
    if (slot.exclusive.load(std::memory_order_relaxed) != 0) return false;
    mark(who, target).store(1);
    if (slot.exclusive.load() == 0) return true;
    mark(who, target).store(0);
    return false;
}

bool LockTable::try_shared_for_another(uint32_t target, bool past_waiting) {
    LockSlot& slot = slots_[target];
    const uint32_t keeps_out = past_waiting ? kHad : ~uint32_t{0};
    if (slot.exclusive.load(std::memory_order_relaxed) & keeps_out) return false;
    slot.others.fetch_add(1);
    if (!(slot.exclusive.load() & keeps_out)) return true;
    slot.others.fetch_sub(1);
    return false;
}

bool LockTable::any_shared(uint32_t target) const {
    if (slots_[target].others.load() != 0) return true;
    for (uint32_t who = 0; who < processes_; ++who)
        if (marks_[target * processes_ + who].load() != 0) return true;
    return false;
}

bool LockTable::try_exclusive(uint32_t holder, uint32_t target) {
    LockSlot& slot = slots_[target];
    uint32_t now = 0;
    if (!slot.exclusive.compare_exchange_strong(now, holder) && now != holder) return now == (holder | kHad);
    if (any_shared(target)) return false;
    // try_shared_for_another() with past_waiting ignores a claim without kHad. Either it counted its lock before this store, so the next
    // any_shared() sees the lock; or it sees kHad and gives up.
    slot.exclusive.store(holder | kHad);
    if (!any_shared(target)) return true;
    slot.exclusive.store(holder);
    return false;
}

void LockTable::release_shared(uint32_t who, uint32_t target) { mark(who, target).store(0, std::memory_order_release); }

void LockTable::release_exclusive(uint32_t target) { slots_[target].exclusive.store(0, std::memory_order_release); }

void LockTable::withdraw_exclusive(uint32_t holder, uint32_t target) {
    uint32_t had = holder | kHad;
    if (!slots_[target].exclusive.compare_exchange_strong(holder, 0)) slots_[target].exclusive.compare_exchange_strong(had, 0);
}

void LockTable::release_shared_for_another(uint32_t target) { slots_[target].others.fetch_sub(1, std::memory_order_release); }

int LockTable::holder(uint32_t target) const {
    const uint32_t exclusive = slots_[target].exclusive.load(std::memory_order_relaxed) & ~kHad;
    if (exclusive != 0 && exclusive <= processes_) return static_cast<int>(exclusive - 1);
    for (uint32_t who = 0; who < processes_; ++who)
        if (marks_[target * processes_ + who].load(std::memory_order_relaxed)) return static_cast<int>(who);
    return -1;
}

void LockTable::bury(uint32_t dead) {
    for (uint32_t target = 0; target < processes_; ++target) {
        mark(dead, target).store(0);
        withdraw_exclusive(holder_here(dead), target);
    }
    end_wait(dead);
}

rma::UpdateLock LockTable::exclusion(uint32_t me, uint32_t target) const {
    return {slots_[target].guard, updating_, processes_, me, target};
}

}  // namespace starling::window
