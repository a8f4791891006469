// Records which process is in which collective operation, for conclusions about members that are missing.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "hang/report.h"

namespace starling::hang {

/// The collective operations in which the processes of a report wait. A value computed once per report.
class CollectiveCalls {
  public:
    explicit CollectiveCalls(const std::vector<RankReport>& ranks);

    /// Returns the members of the communicator that have not called the operation in which a thread of `rank` waits, without `rank`
    /// itself. Returns null if the members are not known.
    const std::vector<ProcessName>* missing(const RankReport& rank, const ThreadWait& wait) const;

  private:
    using CommunicatorId = std::pair<uint64_t, ProcessName>;

    /// The number of the operation in which each process is.
    std::map<CommunicatorId, std::map<ProcessName, uint32_t>> inside_;
    /// Results of missing(), which are equal for all members in one operation.
    mutable std::map<std::pair<CommunicatorId, uint32_t>, std::vector<ProcessName>> missing_;
};

/// Returns the first member. It distinguishes communicators made by one split, which have the same context id. An inter-communicator, or
/// one with unknown members, has none.
inline ProcessName first_member(const Communicator& communicator) {
    return communicator.runs.empty() || communicator.inter ? ProcessName{}
                                                           : ProcessName{communicator.runs[0].job, communicator.runs[0].first};
}

/// Calls `visit(wait, communicator)` for each collective operation in which a waiting process is.
template <class Visit>
void each_collective(const RankReport& rank, Visit visit) {
    if (rank.doing != Doing::waiting || !rank.report) return;
    for (const ThreadWait& wait : rank.report->waits)
        if (wait.collective && wait.communicator >= 0)
            visit(wait, rank.report->communicators[static_cast<size_t>(wait.communicator)]);
}

}  // namespace starling::hang
