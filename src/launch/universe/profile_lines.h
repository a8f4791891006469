// What ranks report of their phases, as the lines of a profile (docs/profile.md).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "control/profile_report.h"
#include "job/job_description.h"

namespace starling::launch {

/// The jobs of one user's mpiexec, and others that they meet. What is returned are whole lines, or nothing.
class ProfileLines {
  public:
    /// What is known of a job; null: nothing.
    using Find = std::function<const job::JobDescription*(job::JobId)>;
    explicit ProfileLines(Find find) : find_(std::move(find)) {}

    /// A job begins, now; `parent` is 0 if it has none.
    std::string begin(const job::JobDescription& job, job::JobId parent);
    /// Of a rank of a job that has begun.
    std::string report(job::JobId job, uint32_t rank, const control::ProfileReport& report);
    /// A job is over: those of its ranks that have not said their last have ended early.
    std::string end(job::JobId job);

  private:
    struct Known {
        uint32_t number = 0;
        uint64_t began_ns = 0;        ///< since 1970
        std::vector<bool> finalized;  ///< by rank
    };
    Known& know(const job::JobDescription& job, job::JobId parent, std::string& lines);
    uint32_t number_of(job::JobId job, std::string& lines);
    std::string communicator_name(uint64_t context, job::JobId own) const;
    void write_phase(const Known& job, job::JobId id, uint32_t rank, const control::ProfileReport::Phase& phase,
                     std::string& lines);

    Find find_;
    std::unordered_map<job::JobId, Known> known_;
};

}  // namespace starling::launch
