// The desk: where processes of other hosts ask for this process's lock of a window. It takes the lock for them on the board, in the
// order of asking, and believes nothing: who asks is known by the way the packet came, and every ask has a number, higher than
// those before of the same process, so what comes twice, or from nobody, is dropped.
//
// Packets of one process may overtake each other: an ask may come before the lock that it had is given back. It waits for that.
#pragma once

#include <algorithm>
#include <cstdint>
#include <list>
#include <map>
#include <vector>

#include "window/lock_table.h"

namespace starling::window {

/// Of each process at most one lock is held and one asked for.
class RemoteLockServer {
  public:
    struct Claimant {
        int rank;
        uint32_t number;
        bool exclusive;
        uint64_t since = 0;  ///< ns, when it asked
    };
    /// A shared lock waits so long behind an exclusive one that is waited for. Then it goes first: its claimant may hold what that waits
    /// for, by MPI_Win_lock_all, which takes locks of other hosts one by one.
    static constexpr uint64_t kPatienceNs = 1'000'000;

    /// `me` is this process's place on the board.
    void open(const LockTable& board, uint32_t me) { board_ = board, me_ = me; }

    bool idle() const { return pending_.empty() && holders_.empty(); }
    bool has_pending() const { return !pending_.empty(); }

    /// Gets in line. False: it has come before, or asks for more than one lock.
    bool ask(const Claimant& claimant);
    /// False: it holds no lock by that number.
    bool give_back(int rank, uint32_t number);
    /// Takes the lock for the first in line that can have it, who is told of it. False: nobody waits, or it can't be had now.
    bool serve(Claimant& served, uint64_t now = 0);
    /// Those who have died hold nothing, and want nothing. Whether there were any; `gave_back` if the board has changed.
    template <class F>
    bool drop(F&& is_dead, bool& gave_back);

  private:
    using Holder = std::vector<Claimant>::iterator;
    Holder holder(int rank) {
        return std::find_if(holders_.begin(), holders_.end(), [rank](const Claimant& c) { return c.rank == rank; });
    }
    void release(Holder holder);
    bool take(const Claimant& claimant, bool past_waiting);

    LockTable board_;
    uint32_t me_ = 0;
    std::list<Claimant> pending_;  // which takes no memory while it is empty
    std::vector<Claimant> holders_;
    std::map<int, uint32_t> last_;  ///< number that each process has asked with
};

template <class F>
bool RemoteLockServer::drop(F&& is_dead, bool& gave_back) {
    gave_back = false;
    for (size_t i = holders_.size(); i-- > 0;) {
        if (!is_dead(holders_[i].rank)) continue;
        release(holders_.begin() + static_cast<ptrdiff_t>(i));
        gave_back = true;
    }
    if (!pending_.empty() && pending_.front().exclusive && is_dead(pending_.front().rank)) {
        board_.withdraw_exclusive(LockTable::holder_afar(pending_.front().rank), me_);
        gave_back = true;
    }
    return std::erase_if(pending_, [&](const Claimant& c) { return is_dead(c.rank); }) != 0 || gave_back;
}

}  // namespace starling::window
