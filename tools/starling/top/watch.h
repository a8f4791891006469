// Reads the running jobs of this machine from their segments, for `starling top`. Jobs are not contacted: the processes increment words
// that this process maps read-only.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/counters.h"
#include "job/segment_view.h"

namespace starling::top {

/// The activity of a process at one instant.
enum class Doing : uint8_t { starting, computing, waiting, asleep, finalized, exited, failed, not_started };
const char* name(Doing doing);

/// One process, with its activity between two snapshots.
struct RankView {
    uint32_t rank = 0;
    int32_t pid = 0;
    std::string host;
    uint32_t core = job::kNotBound;
    Doing doing = Doing::starting;
    double waiting = 0;            ///< share of the samples in which the process was inside a wait, sleep included
    double asleep = 0;             ///< share of the samples in which the process slept
    double cores = 0;              ///< processor time of all threads per time
    uint64_t memory_kb = 0;        ///< resident memory
    std::string call;              ///< MPI function of a wait that has lasted for a while; empty: none
    std::string phase;             ///< name of the current phase; may be empty
    bool counted = false;          ///< true: the process's counters can be read
    std::vector<uint64_t> values;  ///< values of the counters, by row of the counter table
    std::vector<double> rates;     ///< rates per second of counters and timers; 0 for levels
};

/// One job, as the snapshots of this process show it.
struct JobView {
    job::JobId id = 0;
    std::string command, host, state;
    int32_t owner_pid = 0;
    uint32_t size = 0;  ///< number of ranks on all hosts
    uint32_t hosts = 1;
    double age = 0;                        ///< seconds since the initialization of the first rank seen here
    std::vector<RankView> ranks;           ///< the job's ranks on this host
    std::vector<std::string> other_hosts;  ///< other hosts with ranks of the job
};

/// Returns the counters of the rank with this index on this host; valid as long as `job`. Returns null before MPI_Init: the rank has not
/// touched its region yet, and reading it would allocate memory. Also returns null if the rank's counter table is of another version than
/// this program's.
const Counters* counters_of(const job::SegmentView& job, uint32_t index);

/// Returns whether a job matches a filter: its id begins with the text, or its command contains it. An empty filter matches all.
bool matches(const std::string& filter, job::JobId id, const std::string& command);

/// Watches the jobs of this host. Not thread-safe.
class Watch {
  public:
    /// `stubs`: include jobs without ranks here that have a segment on this host. `all_users`: include jobs of other users.
    Watch(std::string filter, bool stubs, bool all_users) : filter_(std::move(filter)), stubs_(stubs), all_users_(all_users) {}

    /// Finds new jobs and removes those that have ended. Reads /proc.
    void find_jobs();

    /// Samples the activity of every process, with one or two loads from memory each.
    void look();

    /// Returns the jobs, oldest first, with rates and shares since the last snapshot.
    std::vector<JobView> snapshot();

    /// Visits the jobs that find_jobs() has found, each with its launcher's pid.
    template <class Visit>
    void each_job(Visit visit) const {
        for (const auto& [key, job] : jobs_) visit(key.first, job.sight);
    }

    /// Returns the number of processes whose jobs can't be read, because their version of Starling differs.
    size_t unreadable() const { return unreadable_; }
    size_t processes() const;

  private:
    struct Rank {
        uint32_t looks = 0, waiting = 0, asleep = 0;
        std::vector<uint64_t> before;  ///< values at the last snapshot; empty if there was none
        uint64_t ticks = 0;            ///< processor time at the last snapshot; 0 if there was none
    };
    struct Job {
        job::SegmentView sight;
        std::vector<Rank> ranks;
        bool here = true;  ///< true: the last find_jobs() found the job again
    };
    using Key = std::pair<int32_t, uint64_t>;  ///< identity of a segment: pid of its owner in this /proc, inode of the memfd

    void find_in(int32_t pid);
    void view_rank(const Job& job, uint32_t index, Rank& rank, double seconds, RankView& view) const;

    std::string filter_;
    bool stubs_, all_users_;
    std::map<Key, Job> jobs_;
    size_t unreadable_ = 0;
    uint64_t last_snapshot_ = 0;  ///< ns
};

}  // namespace starling::top
