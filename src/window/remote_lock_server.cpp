#include "window/remote_lock_server.h"

#include "base/counter_start.h"

namespace starling::window {

bool RemoteLockServer::add_request(const Claimant& claimant) {
    uint32_t& last = last_.try_emplace(claimant.rank, kCounterStart).first->second;
    if (static_cast<int32_t>(claimant.number - last) <= 0) return false;
    const bool waits =
        std::any_of(pending_.begin(), pending_.end(), [&](const Claimant& c) { return c.rank == claimant.rank; });
    if (waits) return false;
    last = claimant.number;
    pending_.push_back(claimant);
    return true;
}

void RemoteLockServer::release(Holder holder) {
    if (holder->exclusive)
        board_.release_exclusive(me_);
    else
        board_.release_shared_for_another(me_);
    holders_.erase(holder);
}

bool RemoteLockServer::release(int rank, uint32_t number) {
    const Holder found = holder(rank);
    if (found == holders_.end() || found->number != number) return false;
    release(found);
    return true;
}

bool RemoteLockServer::try_acquire(const Claimant& claimant, bool past_waiting) {
    // If the process still holds a lock, the packet that releases it has not arrived yet, so the new request waits.
    if (holder(claimant.rank) != holders_.end()) return false;
    if (claimant.exclusive) return board_.try_exclusive(LockTable::holder_afar(claimant.rank), me_);
    return board_.try_shared_for_another(me_, past_waiting);
}

bool RemoteLockServer::serve(Claimant& served, uint64_t now) {
    for (auto each = pending_.begin(); each != pending_.end(); ++each) {
        const bool first = each == pending_.begin();
        const bool past_waiting = !each->exclusive && now > each->since + kPatienceNs;
        if ((!first && !past_waiting) || !try_acquire(*each, past_waiting)) continue;
        served = *each;
        holders_.push_back(served);
        pending_.erase(each);
        return true;
    }
    return false;
}

}  // namespace starling::window
