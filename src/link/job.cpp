#include "link/job.h"

#include <algorithm>
#include <unordered_map>

#include "base/counters.h"
#include "base/error.h"
#include "base/kept_memory.h"
#include "base/reserve.h"
#include "base/state.h"
#include "job/descriptor_passing.h"
#include "link/address_lookup.h"
#include "link/peer.h"
#include "link/transports.h"

namespace starling::link {

namespace {
/// Never destroyed: other threads may still access it while the process exits.
struct Jobs {
    std::vector<Job*> all;
    std::unordered_map<job::JobId, Job*> by_id;
};
STARLING_STATE Lazy<Jobs> met;
Jobs& jobs() { return met.get(); }
STARLING_STATE Process me;
}  // namespace

const Process& self() { return me; }

Job* job_with_id(job::JobId id) {
    const auto found = jobs().by_id.find(id);
    return found == jobs().by_id.end() ? nullptr : found->second;
}

Job* find_job(const job::JobAddress& address) {
    if (Job* job = job_with_id(address.id)) return job;
    auto job = std::make_unique<Job>(address);
    make_room(jobs().all);
    jobs().by_id.emplace(address.id, job.get());
    jobs().all.push_back(job.get());
    return job.release();
}

Job* adopt_own_job(job::JobSegment&& segment, uint32_t rank) {
    Job* job = find_job(segment.address());
    job->segment_ = std::move(segment);
    me = {job, rank};
    job::deposit_through(job->segment().header());
    // Touch the page of the address table before a rank fails. After a failure the survivors share cores, and a page fault of one would
    // delay the others.
    if (job->segment().header().recovers) job->segment().port(rank).load(std::memory_order_relaxed);
    return job;
}

Job* job_at(size_t index) { return index < jobs().all.size() ? jobs().all[index] : nullptr; }

size_t job_count() { return jobs().all.size(); }

void forget_job(Job& job) {
    std::vector<Job*>& all = jobs().all;
    *std::find(all.begin(), all.end(), &job) = all.back();
    all.pop_back();
    jobs().by_id.erase(job.address().id);
    delete &job;
}

Job::~Job() {
    for (Peer* peer : met_) delete peer;
}

bool on_this_host(const Process& process) {
    return process.job->map() == MPI_SUCCESS && process.job->segment().is_local(process.rank);
}

int Job::map() {
    if (segment_) return MPI_SUCCESS;
    if (dead_) return fail(MPI_ERR_PROC_ABORTED, "the job of the peer process has ended");
    const JobHold hold(this);  // while this thread waits for the daemon, another one may forget jobs
    const int error = map_here();
    // Other errors, such as too few descriptors, may be temporary. The callers may be within a poll, so check_liveness() reports the end.
    if (error == MPI_ERR_PROC_ABORTED) dead_ = end_is_news_ = true;
    return error;
}

static bool is_on_several_hosts(const job::JobSegment& segment) { return segment.header().local_ranks < segment.header().size; }

// Checks that both jobs, or neither, use encryption. All jobs of a universe agree, but a program started without mpiexec may connect to
// one.
static int compare_encryption(const job::JobSegment& mine, const job::JobSegment& theirs) {
    const bool encrypts = static_cast<bool>(mine.header().network_secret);
    if (encrypts == static_cast<bool>(theirs.header().network_secret)) return MPI_SUCCESS;
    return fail(MPI_ERR_OTHER,
                "the jobs %s and %s cannot communicate: one was started with STARLING_ENCRYPTION=on and the other "
                "without; start both through mpiexec or standing daemons that have the same setting",
                mine.header().command, theirs.header().command);
}

int Job::map_here() {
    job::JobAddress here = address_;
    const bool elsewhere = here.host != 0 && me.job && here.host != me.job->segment().header().host;
    if (elsewhere)
        if (const int error = resolve(here)) return error;
    if (segment_) return MPI_SUCCESS;  // another thread has mapped the segment meanwhile
    job::JobSegment segment;
    if (const int error = job::JobSegment::open(here, segment)) return error;
    if (me.job && (is_on_several_hosts(segment) || is_on_several_hosts(me.job->segment_)))
        if (const int error = compare_encryption(me.job->segment_, segment)) return error;
    // From now on processes on other hosts may send to us, which requires open sockets.
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
    if (!peers_) peers_.reset(static_cast<Peer**>(allocate_zeros(size, sizeof(Peer*))));
    if (peers_[rank]) return peers_[rank];
    auto peer = std::make_unique<Peer>(*this, rank);
    peer->dead = dead_;
    make_room(met_);
    if (attach(*peer) != MPI_SUCCESS) return nullptr;
    met_.push_back(peer.get());
    if (this != me.job || rank != me.rank) ++counters.peers_met;
    return peers_[rank] = peer.release();
}

}  // namespace starling::link
