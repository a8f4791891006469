// Jobs as one process knows them: its own and every other that it has met.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "job/job_segment.h"
#include "mpi.h"

namespace starling::link {

struct Peer;

/// One job, interned: equal addresses give the same object, as long as anybody holds it or it lives (link/job_reclaim.h has
/// the rules). The segment of another job is mapped at the first message to it.
class Job {
  public:
    explicit Job(const job::JobAddress& address) : address_(address) {}
    ~Job();
    Job(const Job&) = delete;
    Job& operator=(const Job&) = delete;

    /// Who names the job beyond the moment (groups, calls that wait) holds it, and so its peers.
    void hold() { ++holds_; }
    void release() { --holds_; }
    bool held() const { return holds_ > 0; }

    /// Once the job is mapped, that of its segment on this host.
    const job::JobAddress& address() const { return address_; }
    /// Maps this host's segment of the job if it isn't yet. If the address is one of another host, this host's daemon is
    /// asked, which may take until it has asked others. MPI_ERR_PROC_ABORTED with failure_text() if the job is gone.
    int map();
    bool mapped() const { return static_cast<bool>(segment_); }
    job::JobSegment& segment() { return segment_; }

    /// Visits every peer object there is: those that were met, not the whole job.
    template <class F>
    void each_peer(F&& visit) {
        for (size_t i = 0; i < met_.size(); ++i) visit(*met_[i]);
    }
    /// The job's processes can no longer be reached; set once, by check_liveness().
    bool dead() const { return dead_; }
    void mark_dead() { dead_ = true; }
    /// Of a job that recovers: whether more ranks have failed than at the last call.
    bool count_failures(uint32_t failures) { return std::exchange(failures_, failures) != failures; }
    bool failures_are_new(uint32_t failures) const { return failures_ != failures; }
    uint32_t failures_counted() const { return failures_; }

    /// The peer object of a rank, made at first use; nullptr with failure_text() if the job is gone.
    Peer* peer(uint32_t rank);
    /// The same if the rank was met already, else nullptr.
    Peer* peer_if_met(uint32_t rank) const { return peers_ ? peers_[rank] : nullptr; }

  private:
    friend Job* adopt_own_job(job::JobSegment&& segment, uint32_t rank);
    int map_here();

    struct Free {
        void operator()(Peer** table) const { std::free(table); }
    };
    job::JobAddress address_;
    job::JobSegment segment_;
    std::unique_ptr<Peer*[], Free> peers_;  ///< by rank; from calloc, so that of a large job only what is used is touched
    std::vector<Peer*> met_;
    bool dead_ = false;
    uint32_t failures_ = 0;
    uint32_t holds_ = 0;
};

/// Holds a job while it exists.
class JobHold {
  public:
    explicit JobHold(Job* job) : job_(job) { job_->hold(); }
    JobHold(const JobHold& other) : JobHold(other.job_) {}
    JobHold& operator=(const JobHold&) = delete;
    ~JobHold() { job_->release(); }

  private:
    Job* job_;
};

/// The interned job of this address. It may be forgotten at the next wait unless somebody holds it.
Job* find_job(const job::JobAddress& address);

/// The interned job with this id; nullptr if none was met.
Job* job_with_id(job::JobId id);

/// Jobs, those met first mostly first; nullptr past the end.
Job* job_at(size_t index);
size_t job_count();
/// Destroys the job with its peers and its mapping; another takes its index. For link/job_reclaim.h.
void forget_job(Job& job);

/// Takes over the already mapped segment of this process's own job (once, in MPI_Init).
Job* adopt_own_job(job::JobSegment&& segment, uint32_t rank);

/// This process: its job and its rank in it. Null job before MPI_Init.
struct Process {
    Job* job = nullptr;
    uint32_t rank = 0;
    bool operator==(const Process&) const = default;
};
const Process& self();

/// Whether the process is on this host, so that its memory can be reached. Maps its job; false if that is gone.
bool on_this_host(const Process& process);
/// Whether a process can't be reached any more, as far as this host knows now: check_liveness() may be yet to find it.
bool has_ended(const Process& process);
/// Whether the process has that number still. Ask right before the kernel copies from or to its memory: the launcher takes the number out
/// of the job's segment before another process can get it. For processes on this host.
bool has_pid(const Process& process, pid_t pid);
/// Whether pids mean the same to that process and to this one: by no other is its memory reached.
bool shares_pids(const Process& process);
/// That by which its memory is reached; 0 if it is not.
pid_t pid_of(const Process& process);
/// Whether check_liveness() has found it gone, or out of reach, without a normal end.
bool has_failed(const Process& process);

}  // namespace starling::link
