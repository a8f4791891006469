#include "comm/failures.h"

#include <algorithm>

#include "base/process.h"
#include "comm/reference_guard.h"
#include "link/job.h"
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

bool poll_revocation(Comm& comm) {
    const ReferenceGuard kept(&comm);
    if (!comm.collective.revoked()) progress::test();
    return comm.collective.revoked();
}

Group* poll_failures(Comm& comm) {
    const ReferenceGuard kept(&comm);
    progress::test();
    return failed_group(comm, known_failures(comm).ranks.size());
}

bool own_job_loses_a_rank() {
    link::Job* const job = link::self().job;
    if (!job || !job->mapped() || job->segment().header().recovers) return false;
    for (uint32_t rank = 0; rank < job->segment().header().size; ++rank) {
        const link::Process process{job, rank};
        if (rank == link::self().rank || !link::on_this_host(process)) continue;
        if (job->segment().cell(rank).state.load(std::memory_order_acquire) != job::RankState::initialized) continue;
        const pid_t pid = link::pid_of(process);
        if (pid > 0 && neighbour_ended(pid)) return true;
    }
    return false;
}

}  // namespace starling::comm
