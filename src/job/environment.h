// What the launcher tells a rank, through the environment: where the job segment is and who you are.
#pragma once

#include <string>

#include "job/job_segment.h"

namespace starling::job {

inline constexpr const char* kJobVariable = "STARLING_JOB";    ///< "<owner pid>:<owner fd>:<job id, hex>"
inline constexpr const char* kRankVariable = "STARLING_RANK";  ///< decimal
/// The launcher's control socket (JobHeader::control_socket), for ranks that can't open the segment. All processes of a launcher carry it.
inline constexpr const char* kLauncherVariable = "STARLING_LAUNCHER";

struct Identity {
    JobAddress job;
    uint32_t rank = 0;
    bool launched = false;  ///< false: a singleton, no launcher variables in the environment
};

/// Reads the two variables. MPI_ERR_OTHER with failure_text() if they are there but malformed.
int read_identity(Identity& out);

/// "<owner pid>:<owner fd>:<job id, hex>" and back; parse returns false on anything else.
std::string to_string(const JobAddress& address);
bool parse_address(const char* text, JobAddress& out);

}  // namespace starling::job
