// What `starling top` shows: the running jobs of this machine, read from their segments as they run. Nothing is asked of
// a job: the processes increment words that this one maps read-only.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/counters.h"
#include "job/segment_view.h"

namespace starling::top {

/// What a process is doing at an instant.
enum class Doing : uint8_t { starting, computing, waiting, asleep, finalized, exited, failed, not_started };
const char* name(Doing doing);

/// One process over the time between two snapshots.
struct RankView {
    uint32_t rank = 0;
    int32_t pid = 0;
    std::string host;
    uint32_t core = job::kNotBound;
    Doing doing = Doing::starting;
    double waiting = 0;            ///< share of the instants looked at at which it was inside a wait, sleep included
    double asleep = 0;             ///< share of those at which it slept
    bool counted = false;          ///< its counters can be read
    std::vector<uint64_t> values;  ///< by row of the table of counters
    std::vector<double> rates;     ///< per second, of counters and timers; 0 for levels
};

/// One job, as far as it has been seen.
struct JobView {
    job::JobId id = 0;
    std::string command, host, state;
    int32_t owner_pid = 0;
    uint32_t size = 0;  ///< ranks on all hosts
    uint32_t hosts = 1;
    double age = 0;                        ///< seconds since the first of its ranks seen here was initialized
    std::vector<RankView> ranks;           ///< of this host
    std::vector<std::string> other_hosts;  ///< where else it has ranks
};

/// What a rank of this host counts, which has this place there, as long as the job is looked at. Null before MPI_Init, when the rank has not touched its region
/// (reading there would give it memory), and if it counts by another table than this program.
const Counters* counters_of(const job::SegmentView& job, uint32_t index);

/// Which jobs are looked at: those whose id begins with, or whose command contains, a text. Empty: all.
bool matches(const std::string& filter, job::JobId id, const std::string& command);

/// Follows the jobs. Not thread-safe.
class Watch {
  public:
    /// `stubs`: also jobs that have no rank here, if this host knows them. `all_users`: not the own user's alone.
    Watch(std::string filter, bool stubs, bool all_users) : filter_(std::move(filter)), stubs_(stubs), all_users_(all_users) {}

    /// Looks for jobs that have come, and forgets those that are gone. Reads /proc.
    void find_jobs();

    /// Notes what every process is doing at this instant: a load or two of memory for each.
    void look();

    /// The jobs as they are now, with rates and shares since the last snapshot, oldest job first.
    std::vector<JobView> snapshot();

    /// Visits what find_jobs() has found: the launcher's process and its job.
    template <class Visit>
    void each_job(Visit visit) const {
        for (const auto& [key, job] : jobs_) visit(key.first, job.sight);
    }

    /// Processes of other versions of Starling, whose jobs can't be read.
    size_t unreadable() const { return unreadable_; }
    size_t processes() const;

  private:
    struct Rank {
        uint32_t looks = 0, waiting = 0, asleep = 0;
        std::vector<uint64_t> before;  ///< values at the last snapshot; empty if there is none
    };
    struct Job {
        job::SegmentView sight;
        std::vector<Rank> ranks;
        bool here = true;  ///< found again by the last find_jobs()
    };
    using Key = std::pair<int32_t, uint64_t>;  ///< owner as this /proc numbers it, inode of the memfd

    void find_in(int32_t pid);
    void view_rank(const Job& job, uint32_t index, Rank& rank, double seconds, RankView& view) const;

    std::string filter_;
    bool stubs_, all_users_;
    std::map<Key, Job> jobs_;
    size_t unreadable_ = 0;
    uint64_t last_snapshot_ = 0;  ///< ns
};

}  // namespace starling::top
