// The remote lock server: acquires this process's lock of a window for processes of other hosts, through the lock table, first come, first
// served. It trusts no packet. The path identifies the sender, and each request has a higher number than the earlier ones of that
// process. So duplicates, and packets from processes outside the window, are dropped.
//
// Packets of one process may overtake each other: a request may arrive before the release of the process's previous lock. It then waits for
// the release.
#pragma once

#include <algorithm>
#include <cstdint>
#include <list>
#include <map>
#include <vector>

#include "window/lock_table.h"

namespace starling::window {

/// The server of one window at one process. Each remote process has at most one held lock and one request.
class RemoteLockServer {
  public:
    struct Claimant {
        int rank;
        uint32_t number;
        bool exclusive;
        uint64_t since = 0;  ///< time at which the lock was requested, ns
    };
    /// Time after which a shared lock overtakes an exclusive one that a process waits for but does not hold yet. Without this, the two
    /// could deadlock: the process that requests the shared lock may hold, by MPI_Win_lock_all, the lock for which the exclusive one waits.
    /// MPI_Win_lock_all acquires locks of other hosts one by one.
    static constexpr uint64_t kPatienceNs = 1'000'000;

    /// Sets the lock table, and this process's place `me` (its number on the host) in it.
    void open(const LockTable& board, uint32_t me) { board_ = board, me_ = me; }

    bool idle() const { return pending_.empty() && holders_.empty(); }
    bool has_pending() const { return !pending_.empty(); }

    /// Adds a lock request to the queue. Returns false if it is a duplicate, or the process has a pending request.
    bool add_request(const Claimant& claimant);
    /// Releases a lock. Returns false if the process holds no lock of that number.
    bool release(int rank, uint32_t number);
    /// Acquires the lock for the first pending request that can have it, and returns the claimant, which the caller notifies. Returns false
    /// if no request can be served now.
    bool serve(Claimant& served, uint64_t now = 0);
    /// Removes the locks and requests of dead processes. Returns whether there were any; sets `released` if the lock table has changed.
    template <class F>
    bool drop(F&& is_dead, bool& released);

  private:
    using Holder = std::vector<Claimant>::iterator;
    Holder holder(int rank) {
        return std::find_if(holders_.begin(), holders_.end(), [rank](const Claimant& c) { return c.rank == rank; });
    }
    void release(Holder holder);
    bool try_acquire(const Claimant& claimant, bool past_waiting);

    LockTable board_;
    uint32_t me_ = 0;
    std::list<Claimant> pending_;  // requests in order of arrival; a list, because an empty one allocates nothing
    std::vector<Claimant> holders_;
    std::map<int, uint32_t> last_;  ///< number of the last request, by rank
};

template <class F>
bool RemoteLockServer::drop(F&& is_dead, bool& released) {
    released = false;
    for (size_t i = holders_.size(); i-- > 0;) {
        if (!is_dead(holders_[i].rank)) continue;
        release(holders_.begin() + static_cast<ptrdiff_t>(i));
        released = true;
    }
    if (!pending_.empty() && pending_.front().exclusive && is_dead(pending_.front().rank)) {
        board_.withdraw_exclusive(LockTable::holder_afar(pending_.front().rank), me_);
        released = true;
    }
    return std::erase_if(pending_, [&](const Claimant& c) { return is_dead(c.rank); }) != 0 || released;
}

}  // namespace starling::window
