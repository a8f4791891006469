// How the processes that another manager has started on one host find each other: through a helper process, `starlingd host`, which owns
// this host's segment of their job. The first process starts the helper, which ends with the last of them.
#pragma once

#include <string>
#include <string_view>

#include "base/version.h"
#include "bootstrap/manager.h"
#include "control/well_known_socket.h"
#include "job/job_segment.h"

namespace starling::bootstrap {

/// A process's request to the helper, the payload of a `hello` frame.
struct HostJoin {
    uint32_t version = wire_version();  ///< wire version; the first member in all future versions
    job::JobId job = 0;
    uint32_t size = 0;
    uint32_t rank = 0;
    int32_t pid = 0;
    uint32_t appnum = 0;
};

/// The helper's answer, the payload of a `reply` frame.
struct HostWelcome {
    std::string refusal;  ///< an error text; empty if accepted
    /// Only if refused: the job in which another process already has that rank; id 0 if there is no such process.
    job::JobAddress job;
};

std::string encode(const HostJoin& message);
std::string encode(const HostWelcome& message);
bool decode(std::string_view payload, HostJoin& out);
bool decode(std::string_view payload, HostWelcome& out);

/// Returns the job's id, a hash of the manager's protocol and of the manager's name of the job: every host must be able to compute it by
/// itself.
job::JobId id_of(const ManagedJob& job, const char* protocol);

/// Returns the socket of the helper for this user and job. Its names are predictable, so another user may hold some of the abstract ones.
/// The messages on it grant no access to anything, so processes in other containers are accepted too.
control::WellKnownSocket host_meeting(job::JobId job);

/// Connects to the helper by socket file or abstract name. Returns -1 if there is no helper.
int connect_helper(job::JobId job);

/// Maps this host's segment of the job; `id` is the result of id_of(). The segment is created if this process is the first. Returns
/// MPI_SUCCESS, or an error class with failure_text(). On error, `taken` is whether another process already has that rank, in the segment
/// `out`.
int join_host(const ManagedJob& job, job::JobId id, job::JobSegment& out, bool& taken);

}  // namespace starling::bootstrap
