// New communicators from old ones (MPI 5.0 sections 7.4 and 7.6). Every creation is one exchange of what is needed, with which the
// context id travels that a leader draws, and an agreement: all have made their part of it, or nobody keeps his.
//
// All tasks set `result` to the new communicator, with one reference and the error handler of the old one,
// or leave it null where this process is no member. References must outlive the task. Attributes, info and
// topologies are the caller's; so are checks of arguments. A member where such a check has failed takes part all the same, with
// `error_here` and its failure_text(): the others would wait for it, and so they get an error as well.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "collective/core/task.h"
#include "collective/core/view.h"
#include "comm/comm.h"

namespace starling::collective {

/// The context id of a new communicator, which participant 0 draws for all: MPI_ERR_OTHER everywhere if it has none left.
Task draw_context(View v, uint64_t& context);

/// The second step of a creation, under a tag of its own: if no member has an `error`, each gets what its make() gives, and `result` is set
/// where all of them could. `make` must outlive the task.
Task end_creation(View v, int error, const std::function<comm::Comm*()>& make, comm::Comm*& result);

/// An error that a member begins with, and its sentence, which lasts until the members agree.
class ErrorHere {
  public:
    explicit ErrorHere(int error) : error_(error), text_(error ? failure_text() : std::string_view()) {}
    /// This member's error now, with its failure_text(): what it began with counts more than what came `later`.
    int or_else(int later) const { return error_ ? fail(error_, "%s", text_.c_str()) : later; }

  private:
    int error_;
    std::string text_;
};

/// Same groups, new context. Inter-communicators too.
Task duplicate(comm::Comm& comm, comm::Comm*& result, int error_here = MPI_SUCCESS);

/// The members of `group`, a subset of the local group. All of comm's members take part.
/// Inter-communicators: each side gives its own group.
Task create(comm::Comm& comm, comm::Group& group, comm::Comm*& result, int error_here = MPI_SUCCESS);

/// The members of `group`, a subset of an intra-communicator's; nobody else takes part. Messages go under
/// `tag`.
Task create_group(comm::Comm& comm, comm::Group& group, int tag, comm::Comm*& result, int error_here = MPI_SUCCESS);

/// By color (MPI_UNDEFINED: none), ordered by key, then by old rank. Inter-communicators too.
Task split(comm::Comm& comm, int color, int key, comm::Comm*& result, int error_here = MPI_SUCCESS);

/// Where the leaders of two groups talk to each other; at other members it is not looked at.
struct LeaderLink {
    message::MatchContext* channel = nullptr;
    int remote_leader = 0;  ///< rank in the channel
    int tag = 0;
};
/// An inter-communicator of the members of `local` and those of another group, which make the same call.
/// MPI_ERR_COMM on all sides if the groups share a process. A leader with an `error_here` and without a channel can't tell the other
/// group, which waits; any other member's error reaches both groups.
Task create_intercomm(comm::Comm& local, int local_leader, LeaderLink link, comm::Comm*& result, int error_here = MPI_SUCCESS);

/// Both groups of an inter-communicator in one; the one that passes high = false first, if they differ.
Task merge(comm::Comm& intercomm, bool high, comm::Comm*& result, int error_here = MPI_SUCCESS);

/// From groups alone: no communicator need exist. Calls at the same time in overlapping groups must differ
/// in `name`. Errors are reported to `handler`, which the result gets.
Task create_from_group(comm::Group& group, std::string_view name, comm::Errhandler* handler, comm::Comm*& result,
                       int error_here = MPI_SUCCESS);
/// The leader on the other side, which matters at the local leader only; without a group that one can't be told anything.
struct RemoteLeader {
    comm::Group* group;
    int rank;
};
Task create_intercomm_from_groups(comm::Group& local, int local_leader, RemoteLeader remote, std::string_view name,
                                  comm::Errhandler* handler, comm::Comm*& result, int error_here = MPI_SUCCESS);

}  // namespace starling::collective
