#include "window/board.h"

namespace starling::window {

size_t Board::bytes(uint32_t processes) {
    const size_t n = processes;
    return n * (sizeof(Slot) + sizeof(rma::Mark)) + n * sizeof(std::atomic<uint32_t>) + n * n;
}

Board::Board(void* memory, uint32_t processes)
    : processes_(processes),
      slots_(static_cast<Slot*>(memory)),
      updating_(reinterpret_cast<rma::Mark*>(slots_ + processes)),
      waits_(reinterpret_cast<std::atomic<uint32_t>*>(updating_ + processes)),
      marks_(reinterpret_cast<std::atomic<uint8_t>*>(waits_ + processes)) {}

bool Board::try_shared(uint32_t who, uint32_t target) {
    Slot& slot = slots_[target];
    if (slot.exclusive.load(std::memory_order_relaxed) != 0) return false;
    mark(who, target).store(1);
    if (slot.exclusive.load() == 0) return true;
    mark(who, target).store(0);
    return false;
}

bool Board::try_shared_for_another(uint32_t target) {
    Slot& slot = slots_[target];
    if (slot.exclusive.load(std::memory_order_relaxed) != 0) return false;
    slot.others.fetch_add(1);
    if (slot.exclusive.load() == 0) return true;
    slot.others.fetch_sub(1);
    return false;
}

bool Board::try_exclusive(uint32_t holder, uint32_t target) {
    Slot& slot = slots_[target];
    uint32_t now = 0;
    if (!slot.exclusive.compare_exchange_strong(now, holder) && now != holder) return false;
    if (slot.others.load() != 0) return false;
    for (uint32_t who = 0; who < processes_; ++who)
        if (mark(who, target).load() != 0) return false;
    return true;
}

void Board::release_shared(uint32_t who, uint32_t target) { mark(who, target).store(0, std::memory_order_release); }

void Board::release_exclusive(uint32_t target) { slots_[target].exclusive.store(0, std::memory_order_release); }

void Board::withdraw_exclusive(uint32_t holder, uint32_t target) {
    slots_[target].exclusive.compare_exchange_strong(holder, 0);
}

void Board::release_shared_for_another(uint32_t target) { slots_[target].others.fetch_sub(1, std::memory_order_release); }

int Board::holder(uint32_t target) const {
    const uint32_t exclusive = slots_[target].exclusive.load(std::memory_order_relaxed);
    if (exclusive != 0 && exclusive <= processes_) return static_cast<int>(exclusive - 1);
    for (uint32_t who = 0; who < processes_; ++who)
        if (marks_[target * processes_ + who].load(std::memory_order_relaxed)) return static_cast<int>(who);
    return -1;
}

void Board::bury(uint32_t dead) {
    for (uint32_t target = 0; target < processes_; ++target) {
        mark(dead, target).store(0);
        uint32_t holder = holder_here(dead);
        slots_[target].exclusive.compare_exchange_strong(holder, 0);
    }
    end_wait(dead);
}

rma::Exclusion Board::exclusion(uint32_t me, uint32_t target) const {
    return {slots_[target].guard, updating_, processes_, me, target};
}

}  // namespace starling::window
