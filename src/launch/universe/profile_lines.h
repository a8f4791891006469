// Converts the phase reports of ranks to the lines of a profile (docs/profile.md).
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "control/profile_report.h"
#include "job/job_description.h"

namespace starling::launch {

/// The profile of one user's mpiexec: its jobs, and other jobs that they communicate with. The functions return whole lines, or an empty
/// string.
class ProfileLines {
  public:
    /// Returns the description of a job; null if it is unknown.
    using Find = std::function<const job::JobDescription*(job::JobId)>;
    explicit ProfileLines(Find find) : find_(std::move(find)) {}

    /// Records that a job begins now; `parent` is 0 without a parent.
    std::string begin(const job::JobDescription& job, job::JobId parent);
    /// Records a report of a rank of a job that has begun.
    std::string report(job::JobId job, uint32_t rank, const control::ProfileReport& report);
    /// Records that a job has ended: ranks that have not sent their last report have ended early.
    std::string end(job::JobId job);

  private:
    struct ProfiledJob {
        uint32_t number = 0;
        uint64_t began_ns = 0;          ///< begin of the job, ns since 1970
        std::vector<bool> finalized;    ///< by rank: true when the rank's last report has arrived
        std::set<std::string> modules;  ///< lines of modules that were written
    };
    ProfiledJob& know(const job::JobDescription& job, job::JobId parent, std::string& lines);
    uint32_t number_of(job::JobId job, std::string& lines);
    std::string communicator_name(uint64_t context, job::JobId own) const;
    void write_phase(const ProfiledJob& job, job::JobId id, uint32_t rank, const control::ProfileReport::PhaseRecord& phase,
                     std::string& lines);

    Find find_;
    std::unordered_map<job::JobId, ProfiledJob> known_;
};

}  // namespace starling::launch
