#include "comm/failures.h"

#include <algorithm>

#include "message/revocation.h"
#include "message/suspended_receive.h"
#include "progress/engine.h"

namespace starling::comm {

const KnownFailures& known_failures(Comm& comm) {
    const message::Roster& members = comm.collective.roster();
    std::vector<int>& ranks = comm.failures.ranks;
    for (int r = 0; r < members.size(); ++r)
        if (link::has_failed_or_ended(members.at(r)) && std::find(ranks.begin(), ranks.end(), r) == ranks.end())
            ranks.push_back(r);
    return comm.failures;
}

void acknowledge(Comm& comm, size_t count) {
    const message::Roster& members = comm.collective.roster();
    KnownFailures& known = comm.failures;
    for (; known.acknowledged < std::min(count, known.ranks.size()); ++known.acknowledged) {
        const int rank = comm.peers().rank_of(members.at(known.ranks[known.acknowledged]));
        if (rank != MPI_UNDEFINED) comm.point_to_point.acknowledge(rank);
    }
    message::resume_acknowledged(comm.point_to_point);
}

void revoke(Comm& comm) {
    message::revoke(comm.collective);
    progress::notify();
}

void announce_revocation(const Comm& comm) { message::announce_revocation(comm.collective); }

Group* failed_group(const Comm& comm, size_t count) {
    GroupBuilder builder;
    for (size_t i = 0; i < count; ++i) builder.add(comm.collective.roster().at(comm.failures.ranks[i]));
    return builder.build();
}

}  // namespace starling::comm
