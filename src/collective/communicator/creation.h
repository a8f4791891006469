// Creates communicators from others (MPI 5.0 sections 7.4 and 7.6). A creation is one exchange, which also distributes the context id that
// a leader draws, and one agreement: either all members create their part, or none keeps it.
//
// All tasks set `result` to the new communicator, with one reference and the error handler of the old one, or leave it null if this process
// is not a member. References must outlive the task. The caller handles attributes, info and topologies, and checks arguments. A member
// where such a check has failed takes part all the same, with `error_here` and its failure_text(). The others would wait for it; this way
// they return an error as well.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "collective/core/task.h"
#include "collective/core/view.h"
#include "comm/comm.h"

namespace starling::collective {

/// Draws the context id of a new communicator at participant 0 and broadcasts it. MPI_ERR_OTHER on all members if participant 0 has none
/// left.
Task draw_context(View v, uint64_t& context);

/// The second step of a creation, under a tag that differs from the first step's. If no member has an `error`, each calls its make();
/// `result` is set if make() succeeded on all. `make` must outlive the task.
Task end_creation(View v, int error, const std::function<comm::Comm*()>& make, comm::Comm*& result);

/// An error that a member begins with, and its text, kept until the members agree.
class ErrorHere {
  public:
    explicit ErrorHere(int error) : error_(error), text_(error ? failure_text() : std::string_view()) {}
    /// Returns this member's error, with its failure_text(). The error that the member began with has precedence over `later`.
    int or_else(int later) const { return error_ ? fail(error_, "%s", text_.c_str()) : later; }

  private:
    int error_;
    std::string text_;
};

/// Creates a communicator with the same groups and a new context. `comm` may be an inter-communicator.
Task duplicate(comm::Comm& comm, comm::Comm*& result, int error_here = MPI_SUCCESS);

/// Creates a communicator of the members of `group`, a subset of the local group. All of comm's members take part. On an inter-communicator
/// each side passes its own group.
Task create(comm::Comm& comm, comm::Group& group, comm::Comm*& result, int error_here = MPI_SUCCESS);

/// Creates a communicator of the members of `group`, a subset of an intra-communicator's group; only they take part. `tag` separates
/// simultaneous calls.
Task create_group(comm::Comm& comm, comm::Group& group, int tag, comm::Comm*& result, int error_here = MPI_SUCCESS);

/// Splits `comm`, which may be an inter-communicator, by color (MPI_UNDEFINED: not a member). New ranks are ordered by key, then by old
/// rank.
Task split(comm::Comm& comm, int color, int key, comm::Comm*& result, int error_here = MPI_SUCCESS);

/// The connection between the leaders of two groups; ignored on other members.
struct LeaderLink {
    message::MatchContext* channel = nullptr;
    int remote_leader = 0;  ///< rank of the other leader in the channel
    int tag = 0;
};
/// Creates an inter-communicator between the members of `local` and those of another group, which make the same call. MPI_ERR_COMM on all
/// sides if the groups share a process. An `error_here` at any member reaches both groups, unless the leader has no channel: in that case
/// the other group waits, because the leader cannot inform it.
Task create_intercomm(comm::Comm& local, int local_leader, LeaderLink link, comm::Comm*& result, int error_here = MPI_SUCCESS);

/// Merges both groups of an inter-communicator; if `high` differs, the group with high = false comes first.
Task merge(comm::Comm& intercomm, bool high, comm::Comm*& result, int error_here = MPI_SUCCESS);

/// Creates a communicator from a group alone, without any existing communicator. Simultaneous calls in overlapping groups must differ in
/// `name`. Errors are reported to `handler`, which becomes the result's.
Task create_from_group(comm::Group& group, std::string_view name, comm::Errhandler* handler, comm::Comm*& result,
                       int error_here = MPI_SUCCESS);
/// The leader on the other side, used at the local leader only. If `group` is null, the other leader cannot be informed of an error.
struct RemoteLeader {
    comm::Group* group;
    int rank;
};
Task create_intercomm_from_groups(comm::Group& local, int local_leader, RemoteLeader remote, std::string_view name,
                                  comm::Errhandler* handler, comm::Comm*& result, int error_here = MPI_SUCCESS);

}  // namespace starling::collective
