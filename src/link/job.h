// The jobs known to this process: its own, and every other job with which it has communicated.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "base/free_deleter.h"
#include "job/job_segment.h"
#include "mpi.h"

namespace starling::link {

struct Peer;

/// One job. Jobs are interned: equal addresses have the same object, as long as a caller holds it or the job lives (link/job_reclaim.h has
/// the rules). The segment of another job is mapped at the first message to it.
class Job {
  public:
    explicit Job(const job::JobAddress& address) : address_(address) {}
    ~Job();
    Job(const Job&) = delete;
    Job& operator=(const Job&) = delete;

    /// Takes a reference to the job, which keeps the job and its peers. Required for every pointer that outlives the current call, as in
    /// groups and in calls that wait.
    void hold() { ++holds_; }
    void release() { --holds_; }
    bool held() const { return holds_ > 0; }

    /// The address of the job; once the job is mapped, that of its segment on this host.
    const job::JobAddress& address() const { return address_; }
    /// Maps this host's segment of the job unless it is mapped. If the address is of another host, asks this host's daemon, which may have
    /// to ask other daemons first. Returns MPI_ERR_PROC_ABORTED with failure_text() if the job has ended.
    int map();
    bool mapped() const { return static_cast<bool>(segment_); }
    job::JobSegment& segment() { return segment_; }

    /// Visits every existing peer object: peers with which this process has communicated, not the whole job.
    template <class F>
    void each_peer(F&& visit) {
        for (size_t i = 0; i < met_.size(); ++i) visit(*met_[i]);
    }
    /// Returns whether the job's processes are no longer reachable; set once, by check_liveness() or by map().
    bool dead() const { return dead_; }
    void mark_dead() { dead_ = true; }
    /// Returns whether map() has found that the job has ended, and check_liveness() has not reported it yet. Receives may already wait.
    bool end_is_news() const { return end_is_news_; }
    bool take_news_of_end() { return std::exchange(end_is_news_, false); }
    /// Stores the number of failed ranks of a job that recovers. Returns whether it has changed since the last call.
    bool count_failures(uint32_t failures) { return std::exchange(failures_, failures) != failures; }
    bool failures_are_new(uint32_t failures) const { return failures_ != failures; }
    uint32_t failures_counted() const { return failures_; }

    /// Returns the peer object of a rank, created at first use; nullptr with failure_text() if the job has ended.
    Peer* peer(uint32_t rank);
    /// Returns the peer object of a rank if it exists, else nullptr.
    Peer* find_peer(uint32_t rank) const { return peers_ ? peers_[rank] : nullptr; }

  private:
    friend Job* adopt_own_job(job::JobSegment&& segment, uint32_t rank);
    int map_here();

    job::JobAddress address_;
    job::JobSegment segment_;
    /// Peers by rank, from calloc, so that only the used part of a large job's table takes memory.
    std::unique_ptr<Peer*[], FreeDeleter> peers_;
    std::vector<Peer*> met_;
    bool dead_ = false;
    bool end_is_news_ = false;
    uint32_t failures_ = 0;
    uint32_t holds_ = 0;
};

/// Holds a job while this object exists.
class JobHold {
  public:
    explicit JobHold(Job* job) : job_(job) { job_->hold(); }
    JobHold(const JobHold& other) : JobHold(other.job_) {}
    JobHold& operator=(const JobHold&) = delete;
    ~JobHold() { job_->release(); }

  private:
    Job* job_;
};

/// Returns the interned job of this address. The job may be forgotten at the next wait unless it is held.
Job* find_job(const job::JobAddress& address);

/// Returns the interned job with this id, or nullptr if there is none.
Job* job_with_id(job::JobId id);

/// Return the job at an index (nullptr past the end) and the number of jobs. Most jobs are in the order in which they became known.
Job* job_at(size_t index);
size_t job_count();
/// Destroys the job with its peers and its mapping; another job takes its index. For link/job_reclaim.h.
void forget_job(Job& job);

/// Interns this process's own job with its already mapped segment (once, in MPI_Init).
Job* adopt_own_job(job::JobSegment&& segment, uint32_t rank);

/// A process: its job and its rank in it. self() is this process; its job is null before MPI_Init.
struct Process {
    Job* job = nullptr;
    uint32_t rank = 0;
    bool operator==(const Process&) const = default;
};
const Process& self();

/// Returns whether the process is on this host, so that its memory can be accessed. Maps its job; false if that fails.
bool on_this_host(const Process& process);
/// Returns whether a process is no longer reachable, as far as this host knows now; check_liveness() may not have noticed it yet.
bool has_ended(const Process& process);
/// Returns whether the process still has that pid. Call it right before the kernel copies from or to the process's memory: the launcher
/// removes the pid from the job's segment before another process can get it. For processes on this host.
bool has_pid(const Process& process, pid_t pid);
/// Returns whether pids mean the same to that process and to this one. If not, its memory cannot be accessed by pid.
bool shares_pids(const Process& process);
/// Returns the pid by which the process's memory is accessed; 0 if it cannot be.
pid_t pid_of(const Process& process);
/// Returns whether check_liveness() has found that the process has ended abnormally or is unreachable.
bool has_failed(const Process& process);
/// Returns whether check_liveness() has found that the process has failed, or that its whole job has ended, in whatever way.
inline bool has_failed_or_ended(const Process& process) { return process.job->dead() || has_failed(process); }

}  // namespace starling::link
