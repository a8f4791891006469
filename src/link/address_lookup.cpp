#include "link/address_lookup.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/lock.h"
#include "base/no_destroy.h"
#include "base/state.h"
#include "control/control.h"
#include "link/peer.h"
#include "link/remote_peer.h"

namespace starling::link {

STARLING_STATE decltype(other_locate) other_locate = nullptr;

namespace {

/// Timeout of resolve(), ns: the time that the daemon has to find a job.
constexpr uint64_t kResolveNs = 30'000'000'000;
/// Maximum number of requests sent at a time. A reply about one rank also fills in the other ranks of its host, which answers most of the
/// requests that wait.
constexpr size_t kMost = 32;
constexpr uint32_t kWholeJob = ~0u;  ///< value of PendingLookup::rank: the request is for the job's location, not a rank's port

struct PendingLookup {
    job::JobId job;
    uint32_t rank;
    uint32_t word = 0;  ///< the rank's word in the address table when the request was made
    bool sent = false;
    control::ControlCall call;
    uint32_t polls = 0;  ///< RankCell::polls of the rank, from the reply
};
STARLING_STATE NoDestroy<std::vector<std::unique_ptr<PendingLookup>>> questions_storage;  ///< pending requests, oldest first
constinit auto& questions = questions_storage.value;

int query(PendingLookup& question) {
    const Process& me = self();
    const bool whole = question.rank == kWholeJob;
    const control::JobQuery query{question.job, whole ? 0 : question.rank};
    question.sent = true;
    return control::ControlCall::start(me.job->segment(), me.rank,
                                       whole ? control::MessageKind::resolve : control::MessageKind::locate, encode(query),
                                       question.call);
}

int read_reply(const control::ControlCall& call, control::JobReply& reply) {
    if (!decode(call.reply(), reply)) return fail(MPI_ERR_INTERN, "the daemon sent an invalid reply to a request about a job");
    if (reply.error_class) return fail(reply.error_class, "%s", reply.text.c_str());
    return MPI_SUCCESS;
}

bool is_open(job::JobId job, uint32_t rank) {
    return std::any_of(questions.begin(), questions.end(), [&](const auto& q) { return q->job == job && q->rank == rank; });
}

void put(job::JobId job, uint32_t rank) {
    if (is_open(job, rank)) return;
    const uint32_t word = rank == kWholeJob ? 0 : job_with_id(job)->segment().port(rank).load();
    questions.push_back(std::make_unique<PendingLookup>(PendingLookup{job, rank, word, false, {}, 0}));
}

/// Returns whether the request has become needless: the reply to another request, of this or another process, has brought the information,
/// or the job has ended.
bool answered_already(const PendingLookup& question) {
    Job* job = job_with_id(question.job);
    if (question.rank == kWholeJob) return job && job->mapped();
    return !job || job->dead() || job->segment().port(question.rank).load() != question.word;
}

/// Returns whether the request is finished; sets `error` if it failed. After an error, a caller that still needs the information makes a
/// new request.
bool advance(PendingLookup& question, int& error) {
    if (answered_already(question)) return true;
    if (other_locate && question.rank != kWholeJob && question.job == self().job->address().id)
        return other_locate(self().job->segment(), question.rank);
    bool done = false;
    if ((!question.sent && query(question)) || question.call.poll(done)) {
        error = MPI_ERR_OTHER;  // an error of this host's daemon does not mean that the peer has failed
        return true;
    }
    if (!done) return false;
    control::JobReply reply;
    error = read_reply(question.call, reply);
    question.polls = reply.polls;
    if (!error && question.rank == kWholeJob) error = find_job(reply.job)->map();
    return true;
}

STARLING_STATE bool is_advancing = false;  ///< whether a thread is in advance_alone()

/// advance(), during which poll_answers() of other threads does nothing.
bool advance_alone(PendingLookup& question, int& error) {
    struct EndOfAdvance {
        ~EndOfAdvance() { is_advancing = false; }
    } const end;
    is_advancing = true;
    return advance(question, error);
}

void finish(const PendingLookup& question, int error) {
    if (question.rank == kWholeJob) return;  // nothing to do: when processes of that job send again, the job is looked up again
    Job* job = job_with_id(question.job);    // the job may have been forgotten
    if (Peer* peer = job ? job->find_peer(question.rank) : nullptr) on_located(*peer, error, question.polls);
}

}  // namespace

int resolve(job::JobAddress& address) {
    PendingLookup question{address.id, kWholeJob, 0, false, {}, 0};
    if (const int error = query(question)) return error;
    const uint64_t end = now_ns() + kResolveNs;
    bool done = false;
    while (!done) {
        if (const int error = question.call.poll(done)) return error;
        if (done) break;
        if (now_ns() > end)
            return fail(MPI_ERR_PROC_ABORTED, "no host of this universe has answered for job %llx within %d seconds",
                        static_cast<unsigned long long>(address.id), static_cast<int>(kResolveNs / 1'000'000'000));
        pollfd wait{question.call.descriptor(), POLLIN, 0};
        const OutsideLibrary outside;  // other threads may use the library meanwhile
        ::poll(&wait, 1, 100);
    }
    control::JobReply reply;
    if (const int error = read_reply(question.call, reply)) return error;
    address = reply.job;
    return MPI_SUCCESS;
}

void start_resolving(job::JobId id) { put(id, kWholeJob); }

void locate(Job& job, uint32_t rank) { put(job.address().id, rank); }

// Job::map() may release the lock while it asks other daemons. A thread that polls meanwhile must not remove requests.
bool poll_answers() {
    if (is_advancing) return false;
    bool any = false;
    for (size_t i = 0; i < questions.size() && i < kMost;) {
        int error = MPI_SUCCESS;
        if (!advance_alone(*questions[i], error)) {
            ++i;
            continue;
        }
        // The request is removed first, because the reply's handling may make new requests.
        const std::unique_ptr<PendingLookup> answered = std::move(questions[i]);
        questions.erase(questions.begin() + static_cast<std::ptrdiff_t>(i));
        finish(*answered, error);
        any = true;
    }
    return any;
}

void notify_abandoned(const Job& job, uint32_t rank) {
    if (other_locate) return;  // another process manager has started this job, so there is no daemon
    const Process& me = self();
    const control::JobQuery query{job.address().id, rank};
    control::ControlCall call;
    control::ControlCall::start(me.job->segment(), me.rank, control::MessageKind::abandoned, encode(query), call);
}

bool has_pending_queries() { return !questions.empty(); }

bool must_poll_for_answers() { return other_locate && !questions.empty(); }

}  // namespace starling::link
