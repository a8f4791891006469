// The environment variables through which a rank learns its job segment and its rank number from the launcher.
#pragma once

#include <string>

#include "job/job_segment.h"

namespace starling::job {

inline constexpr const char* kJobVariable = "STARLING_JOB";    ///< "<owner pid>:<owner fd>:<job id, hex>"
inline constexpr const char* kRankVariable = "STARLING_RANK";  ///< rank in its job, decimal
inline constexpr const char* kSizeVariable = "STARLING_SIZE";  ///< number of processes of the job, for scripts
/// The launcher's control socket (JobHeader::control_socket), for ranks that cannot open the segment. Set for all processes of a launcher.
inline constexpr const char* kLauncherVariable = "STARLING_LAUNCHER";

/// Variables of other launchers. Starling's gives PMI_FD a descriptor that no process has, so that MPI_Init of an MPICH that no shim has
/// replaced, as in a container, fails and does not start a job of one process. It empties the other variable.
inline constexpr const char* kPmiVariable = "PMI_FD";
inline constexpr const char* kPmixVariable = "PMIX_NAMESPACE";
inline constexpr const char* kNoPmi = "1000000000";
inline constexpr const char* kAlonePmi = "-1";  ///< for the only process of a job: any MPI runs

/// Returns whether PMI_FD names a manager: Starling's launcher gives its processes values that name none.
bool has_pmi_manager();

struct ProcessIdentity {
    JobAddress job;
    uint32_t rank = 0;
    bool launched = false;  ///< false for a singleton: no launcher variables in the environment
};

/// Reads kJobVariable and kRankVariable. Returns MPI_ERR_OTHER with failure_text() if they are present but malformed.
int read_identity(ProcessIdentity& out);

/// Convert a JobAddress to and from "<owner pid>:<owner fd>:<job id, hex>". parse_address() returns false for any other text.
std::string to_string(const JobAddress& address);
bool parse_address(const char* text, JobAddress& out);

}  // namespace starling::job
