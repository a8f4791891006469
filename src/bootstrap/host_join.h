// How the processes that another manager has started on one host find each other: through a helper,
// `starlingd host`, which owns this host's segment of their job. The first to come starts it; it ends with
// the last of them.
#pragma once

#include <string>
#include <string_view>

#include "base/version.h"
#include "bootstrap/manager.h"
#include "control/well_known_socket.h"
#include "job/job_segment.h"

namespace starling::bootstrap {

/// What a process says to the helper, as the payload of a `hello` frame.
struct HostJoin {
    uint32_t version = wire_version();  ///< first in all versions to come
    job::JobId job = 0;
    uint32_t size = 0;
    uint32_t rank = 0;
    int32_t pid = 0;
    uint32_t appnum = 0;
};

/// What it is told, as the payload of a `reply` frame.
struct HostWelcome {
    std::string refusal;  ///< a sentence; empty if welcome
    job::JobAddress job;  ///< with a refusal: of the job in which another process is that rank already, id 0 if none is
};

std::string encode(const HostJoin& message);
std::string encode(const HostWelcome& message);
bool decode(std::string_view payload, HostJoin& out);
bool decode(std::string_view payload, HostWelcome& out);

/// The job's id, which every host must find out for itself: from the manager's protocol and name of it.
job::JobId id_of(const ManagedJob& job, const char* protocol);

/// Where the helper for this user and job is. The names can be foretold, so that another user may hold some of the abstract ones. What
/// is said there gives no access to anything, so processes in other containers are answered too.
control::WellKnownSocket host_meeting(job::JobId job);

/// Connects to the helper, whichever door it has. -1 if there is none.
int connect_helper(job::JobId job);

/// Maps this host's segment of the job, `id` being what id_of() says. It is made if this process is the
/// first. MPI_SUCCESS, or an error class with failure_text(); `taken` then says whether another process is that rank already, in
/// the segment that `out` is.
int join_host(const ManagedJob& job, job::JobId id, job::JobSegment& out, bool& taken);

}  // namespace starling::bootstrap
