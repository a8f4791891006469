#include "link/job.h"

#include <vector>

#include "base/error.h"
#include "link/peer.h"

namespace starling::link {

namespace {
constinit std::vector<std::unique_ptr<Job>> jobs;
constinit Process me;
}  // namespace

const Process& self() { return me; }

Job* find_job(const boot::JobAddress& address) {
    for (auto& job : jobs)
        if (job->address() == address) return job.get();
    return jobs.emplace_back(std::make_unique<Job>(address)).get();
}

Job* adopt_own_job(boot::JobSegment&& segment, uint32_t rank) {
    Job* job = find_job(segment.address());
    job->segment_ = std::move(segment);
    me = {job, rank};
    return job;
}

Job* job_at(size_t index) { return index < jobs.size() ? jobs[index].get() : nullptr; }

int Job::map() {
    if (segment_) return MPI_SUCCESS;
    if (dead_) return fail(MPI_ERR_PROC_ABORTED, "the job of the peer process has ended");
    const int error = boot::JobSegment::open(address_, segment_);
    if (error == MPI_ERR_PROC_ABORTED) dead_ = true;  // too few descriptors, say, may pass
    return error;
}

Peer* Job::peer(uint32_t rank) {
    if (map() != MPI_SUCCESS) return nullptr;
    if (rank >= segment_.header().size) {
        fail(MPI_ERR_INTERN, "a job of %u processes has no rank %u", segment_.header().size, rank);
        return nullptr;
    }
    if (!peers_) peers_ = std::make_unique<Peer*[]>(segment_.header().size);
    if (peers_[rank]) return peers_[rank];
    Peer* peer = new Peer(*this, rank, shm::Region(segment_.region(rank)));
    peer->dead = dead_;
    return peers_[rank] = peer;
}

}  // namespace starling::link
