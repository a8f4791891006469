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
