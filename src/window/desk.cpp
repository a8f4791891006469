#include "window/desk.h"

#include "base/counter_start.h"

namespace starling::window {

bool Desk::ask(const Claimant& claimant) {
    uint32_t& last = last_.try_emplace(claimant.rank, kCounterStart).first->second;
    if (static_cast<int32_t>(claimant.number - last) <= 0) return false;
    const bool waits =
        std::any_of(pending_.begin(), pending_.end(), [&](const Claimant& c) { return c.rank == claimant.rank; });
    if (waits) return false;
    last = claimant.number;
    pending_.push_back(claimant);
    return true;
}

void Desk::release(Holder holder) {
    if (holder->exclusive)
        board_.release_exclusive(me_);
    else
        board_.release_shared_for_another(me_);
    holders_.erase(holder);
}

bool Desk::give_back(int rank, uint32_t number) {
    const Holder found = holder(rank);
    if (found == holders_.end() || found->number != number) return false;
    release(found);
    return true;
}

bool Desk::serve(Claimant& served) {
    if (pending_.empty()) return false;
    const Claimant first = pending_.front();
    if (holder(first.rank) != holders_.end()) return false;  // what it had is on its way back
    const bool had =
        first.exclusive ? board_.try_exclusive(Board::holder_afar(first.rank), me_) : board_.try_shared_for_another(me_);
    if (!had) return false;
    holders_.push_back(first);
    pending_.pop_front();
    served = first;
    return true;
}

}  // namespace starling::window
