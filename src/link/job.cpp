#include "link/job.h"

#include <new>

#include "base/error.h"
#include "base/immortal.h"
#include "link/locate.h"
#include "link/peer.h"
#include "link/remote.h"

namespace starling::link {

namespace {
constinit Immortal<std::vector<std::unique_ptr<Job>>> jobs_storage;
constinit auto& jobs = jobs_storage.value;
constinit Process me;
}  // namespace

const Process& self() { return me; }

Job* job_with_id(boot::JobId id) {
    for (auto& job : jobs)
        if (job->address().id == id) return job.get();
    return nullptr;
}

Job* find_job(const boot::JobAddress& address) {
    if (Job* job = job_with_id(address.id)) return job;
    return jobs.emplace_back(std::make_unique<Job>(address)).get();
}

Job* adopt_own_job(boot::JobSegment&& segment, uint32_t rank) {
    Job* job = find_job(segment.address());
    job->segment_ = std::move(segment);
    me = {job, rank};
    return job;
}

Job* job_at(size_t index) { return index < jobs.size() ? jobs[index].get() : nullptr; }

bool on_this_host(const Process& process) {
    return process.job->map() == MPI_SUCCESS && process.job->segment().is_local(process.rank);
}

int Job::map() {
    if (segment_) return MPI_SUCCESS;
    if (dead_) return fail(MPI_ERR_PROC_ABORTED, "the job of the peer process has ended");
    const int error = map_here();
    if (error == MPI_ERR_PROC_ABORTED) dead_ = true;  // too few descriptors, say, may pass
    return error;
}

int Job::map_here() {
    boot::JobAddress here = address_;
    const bool elsewhere = here.host != 0 && me.job && here.host != me.job->segment().header().host;
    if (elsewhere)
        if (const int error = resolve(here)) return error;
    if (segment_) return MPI_SUCCESS;  // another thread did meanwhile
    boot::JobSegment segment;
    if (const int error = boot::JobSegment::open(here, segment)) return error;
    // Processes on other hosts can write to us from now on only if we listen.
    if (segment.header().local_ranks < segment.header().size)
        if (const int error = open_network()) return error;
    segment_ = std::move(segment);
    address_ = segment_.address();
    return MPI_SUCCESS;
}

Peer* Job::peer(uint32_t rank) {
    if (map() != MPI_SUCCESS) return nullptr;
    const uint32_t size = segment_.header().size;
    if (rank >= size) {
        fail(MPI_ERR_INTERN, "a job of %u processes has no rank %u", size, rank);
        return nullptr;
    }
    if (!peers_) {
        peers_.reset(static_cast<Peer**>(std::calloc(size, sizeof(Peer*))));
        if (!peers_) throw std::bad_alloc();
    }
    if (peers_[rank]) return peers_[rank];
    const bool here = segment_.is_local(rank);
    auto peer = std::make_unique<Peer>(*this, rank, shm::Region(here ? segment_.region(rank) : nullptr));
    peer->dead = dead_;
    if (!here && attach_session(*peer) != MPI_SUCCESS) return nullptr;
    met_.push_back(peer.get());
    return peers_[rank] = peer.release();
}

}  // namespace starling::link
