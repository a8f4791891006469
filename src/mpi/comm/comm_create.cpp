// Creation of communicators: arguments, attributes and info of the collective creation tasks.
#include <cstring>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/no_destroy.h"
#include "base/shim_hooks.h"
#include "base/state.h"
#include "collective/channel_exchange.h"
#include "collective/collective_request.h"
#include "collective/communicator/creation.h"
#include "mpi/comm/comm.h"
#include "mpi/comm/comm_hints.h"
#include "mpi/comm/errhandler_handle.h"
#include "mpi/common/check.h"
#include "mpi/completion/request_handle.h"

namespace starling::mpi {

using collective::Task;
using comm::Comm;

namespace {

int check_place(const MPI_Comm* newcomm) { return newcomm ? MPI_SUCCESS : null_pointer("newcomm"); }

int not_a_group(const char* which) { return fail(MPI_ERR_GROUP, "the %s is null or not valid; was it freed?", which); }

int copy_info(MPI_Info info, comm::Info& object) {
    return comm::read_info(info, object) ? MPI_SUCCESS : fail(MPI_ERR_INFO, "the info object is not valid; was it freed?");
}

// A duplication in progress. Attributes are copied when it starts (MPI 5.0 section 7.4.2), as MPI_Comm_idup must do; MPI_Comm_dup does the
// same, so that callbacks see no difference.
struct Duplication {
    comm::AttributeSet attributes;
    int error = MPI_SUCCESS;  ///< error of an argument or of a copy callback
    std::string text;
    MPI_Comm from = MPI_COMM_NULL;
    comm::Hints hints;
    Comm* made = nullptr;
    MPI_Comm* newcomm = nullptr;  ///< where the handle is stored; null only if there is an error
};

Task run_duplication(Comm& comm, Duplication& state) {
    const KeptMemory kept;
    if (state.newcomm) *state.newcomm = MPI_COMM_NULL;
    if (state.error) fail(state.error, "%s", state.text.c_str());
    if (const int error = co_await collective::duplicate(comm, state.made, state.error)) {
        state.attributes.clear(comm::AttributeHolder(state.from));  // runs the delete callbacks for the copied attributes
        co_return error;
    }
    const MPI_Comm handle = comm::to_handle(state.made);
    state.made->attributes.take(state.attributes);
    state.made->hints = state.hints;
    co_await collective::open_cast(*state.made);
    *state.newcomm = handle;
    if (foreign) {
        const OutsideLibrary outside;
        foreign->comm_made(state.newcomm);
    }
    co_return MPI_SUCCESS;
}

struct DuplicationRequest : collective::CollectiveRequest {
    Duplication state;
};

STARLING_STATE NoDestroy<RequestPool<DuplicationRequest>> duplication_pool_storage;
constinit auto& duplication_pool = duplication_pool_storage.value;

constexpr progress::RequestClass kDuplicationClass{
    .dispose = [](progress::Request& request) { duplication_pool.destroy(static_cast<DuplicationRequest&>(request)); }};

// Starts a duplication: checks the arguments and copies the attributes. An error found here is stored in `state`, and the other members
// learn of it during the duplication.
int prepare(MPI_Comm handle, MPI_Info info, MPI_Comm* newcomm, Comm*& comm, Duplication& state) {
    comm = comm::from_handle(handle);
    if (!comm) return bad_comm(handle);
    comm::Info object;
    state.error = check_place(newcomm);
    if (!state.error) state.error = copy_info(info, object);
    if (!state.error) read_hints(object, state.hints);
    state.newcomm = newcomm;
    state.from = handle;
    const comm::ReferenceGuard kept(comm);
    if (!state.error) state.error = comm->attributes.copy_to(comm::AttributeHolder(handle), state.attributes);
    if (state.error) state.text = failure_text();
    return MPI_SUCCESS;
}

int duplicate(MPI_Comm handle, MPI_Info info, MPI_Comm* newcomm) {
    MakingLock lock;
    Comm* comm = nullptr;
    Duplication state;
    if (const int error = prepare(handle, info, newcomm, comm, state)) return error;
    const comm::ReferenceGuard kept(comm);
    return raise(comm, collective::run(run_duplication(*comm, state)));
}

int start_duplication(MPI_Comm handle, MPI_Info info, MPI_Comm* newcomm, MPI_Request* request) {
    MakingLock lock;
    Comm* comm = comm::from_handle(handle);
    if (!comm) return bad_comm(handle);
    if (!request) return null_argument(comm, "request");
    DuplicationRequest* made = duplication_pool.create(comm, kDuplicationClass);
    if (const int error = prepare(handle, info, newcomm, comm, made->state)) {
        duplication_pool.destroy(*made);
        return error;
    }
    *request = request_to_handle(made);
    collective::start(run_duplication(*comm, made->state), *made);
    return MPI_SUCCESS;
}

// Stores the handle of a newly created communicator (`made`, null after an error) in the caller's variable; raises `error`, if there is
// one, and returns the code for the caller.
int finish(Comm* comm, int error, Comm* made, MPI_Comm* newcomm) {
    if (made) collective::run(collective::open_cast(*made));
    if (newcomm) *newcomm = comm::to_handle(made);
    return error ? raise(comm, error) : MPI_SUCCESS;
}

int check_subset(const comm::Group& group, const Comm& comm) {
    for (const comm::GroupRun& run : group.runs())
        for (int i = 0; i < run.count; ++i)
            if (comm.local_group().rank_of(run.at(i)) == MPI_UNDEFINED)
                return fail(MPI_ERR_GROUP, "the group has members that are not in the communicator");
    return MPI_SUCCESS;
}

// Returns a number that identifies this host within the group: the lowest rank on it.
int host_color(const comm::Group& group) {
    int rank = 0;
    while (!link::on_this_host(group.at(rank))) ++rank;  // the loop ends at this process at the latest
    return rank;
}

// Returns a number that identifies the members that are in process set `name` together with this process: the lowest rank among them.
int set_color(const comm::Group& group, const std::string& name) {
    if (name == "mpi://SELF") return group.my_rank();
    if (name != "mpi://WORLD") return MPI_UNDEFINED;
    int rank = 0;
    while (group.at(rank).job != link::self().job) ++rank;  // the loop ends at this process at the latest
    return rank;
}

// Returns the color for MPI_Comm_split_type; below 0 if an argument is wrong.
int color_of_type(int split_type, const comm::Info& info, const comm::Group& group) {
    switch (split_type) {
        case MPI_UNDEFINED:
            return MPI_UNDEFINED;
        case MPI_COMM_TYPE_SHARED:
            return host_color(group);
        // There is no hardware level below the host yet.
        case MPI_COMM_TYPE_HW_UNGUIDED:
            return MPI_UNDEFINED;
        case MPI_COMM_TYPE_RESOURCE_GUIDED:
            if (const std::string* set = info.find("mpi_pset_name")) return set_color(group, *set);
            [[fallthrough]];
        case MPI_COMM_TYPE_HW_GUIDED: {
            const std::string* type = info.find("mpi_hw_resource_type");
            return type && *type == "mpi_shared_memory" ? host_color(group) : MPI_UNDEFINED;
        }
        default:
            return -1;
    }
}

/// A call that creates a communicator from groups: all its arguments except the groups, and the handler for its errors.
class FromGroup {
  public:
    FromGroup(const char* stringtag, MPI_Info info, MPI_Errhandler errhandler, MPI_Comm* newcomm)
        : handler(usable_errhandler(errhandler, comm::HandlerKind::comm)), newcomm_(newcomm), kept_(handler) {
        comm::Info object;
        if (!handler)
            error = MPI_ERR_ERRHANDLER;
        else if (!newcomm)
            error = null_pointer("newcomm");
        else
            error = copy_info(info, object);
        if (!error) read_hints(object, hints_);
        if (!stringtag)
            lacks_name = error = null_pointer("stringtag");
        else if (strnlen(stringtag, MPI_MAX_STRINGTAG_LEN) >= MPI_MAX_STRINGTAG_LEN)
            lacks_name = error = fail(MPI_ERR_ARG, "the string tag is longer than %d characters", MPI_MAX_STRINGTAG_LEN - 1);
    }

    /// Stores the handle of the new communicator and returns the code for the caller. Errors go to the given error handler (MPI 5.0
    /// sections 7.4.2 and 7.6.2); there is no communicator to raise them on.
    int finish() {
        if (made) {
            made->hints = hints_;
            collective::run(collective::open_cast(*made));
        }
        if (newcomm_) *newcomm_ = comm::to_handle(made);
        if (!error) return MPI_SUCCESS;
        return handler ? raise_through(handler, comm::HandlerKind::comm, {.comm = MPI_COMM_NULL}, error)
                       : raise(nullptr, error);
    }

    comm::Errhandler* const handler;
    Comm* made = nullptr;
    int error = MPI_SUCCESS;
    int lacks_name = MPI_SUCCESS;  ///< error in the string tag, without which this process cannot notify the others

  private:
    MPI_Comm* const newcomm_;
    comm::Hints hints_;
    const comm::ReferenceGuard<comm::Errhandler> kept_;
};

}  // namespace

int Comm_dup(MPI_Comm comm, MPI_Comm* newcomm) { return duplicate(comm, MPI_INFO_NULL, newcomm); }

int Comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm* newcomm) { return duplicate(comm, info, newcomm); }

int Comm_idup(MPI_Comm comm, MPI_Comm* newcomm, MPI_Request* request) {
    return start_duplication(comm, MPI_INFO_NULL, newcomm, request);
}

int Comm_idup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm* newcomm, MPI_Request* request) {
    return start_duplication(comm, info, newcomm, request);
}

int Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm* newcomm) {
    MakingLock lock;
    Comm* c = comm::from_handle(comm);
    if (!c) return bad_comm(comm);
    comm::Group* g = comm::from_handle(group);
    int wrong = check_place(newcomm);
    if (!wrong) wrong = g ? check_subset(*g, *c) : not_a_group("group");
    if (!g) g = &c->local_group();
    const comm::ReferenceGuard kept(c);
    const comm::ReferenceGuard kept_group(g);
    Comm* made = nullptr;
    const int error = collective::run(collective::create(*c, *g, made, wrong));
    return finish(c, error, made, newcomm);
}

int Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm* newcomm) {
    MakingLock lock;
    Comm* c = comm::from_handle(comm);
    if (!c) return bad_comm(comm);
    if (c->is_inter) return wrong_kind_of_comm(c);
    comm::Group* g = comm::from_handle(group);
    if (!g) return bad_handle(c, MPI_ERR_GROUP, "group");
    if (!valid_tag(tag)) return bad_tag(c, tag);
    if (const int error = check_subset(*g, *c)) return raise(c, error);
    // The other members learn of wrong arguments, except of a wrong group or tag: these two identify the call to them.
    const int wrong = check_place(newcomm);
    const comm::ReferenceGuard kept(c);
    const comm::ReferenceGuard kept_group(g);
    Comm* made = nullptr;
    // A process outside the group may call the function; it has nothing to do.
    const bool member = g->my_rank() != MPI_UNDEFINED;
    const int error = member ? collective::run(collective::create_group(*c, *g, tag, made, wrong)) : wrong;
    return finish(c, error, made, newcomm);
}

int Comm_split(MPI_Comm comm, int color, int key, MPI_Comm* newcomm) {
    MakingLock lock;
    Comm* c = comm::from_handle(comm);
    if (!c) return bad_comm(comm);
    int wrong = check_place(newcomm);
    if (!wrong && color < 0 && color != MPI_UNDEFINED)
        wrong = fail(MPI_ERR_ARG, "color %d is not valid; use a number from 0 on, or MPI_UNDEFINED", color);
    const comm::ReferenceGuard kept(c);
    Comm* made = nullptr;
    const int error = collective::run(collective::split(*c, color, key, made, wrong));
    return finish(c, error, made, newcomm);
}

int Comm_split_type(MPI_Comm comm, int split_type, int key, MPI_Info info, MPI_Comm* newcomm) {
    MakingLock lock;
    Comm* c = comm::from_handle(comm);
    if (!c) return bad_comm(comm);
    comm::Info object;
    int wrong = check_place(newcomm);
    if (!wrong) wrong = copy_info(info, object);
    const int color = color_of_type(split_type, object, c->local_group());
    if (!wrong && color == -1)
        wrong = fail(MPI_ERR_ARG,
                     "%d is not a valid split type; use a constant MPI_COMM_TYPE_... or "
                     "MPI_UNDEFINED",
                     split_type);
    const comm::ReferenceGuard kept(c);
    Comm* made = nullptr;
    const int error = collective::run(collective::split(*c, color, key, made, wrong));
    if (made) read_hints(object, made->hints);
    return finish(c, error, made, newcomm);
}

int Intercomm_create(MPI_Comm local_comm, int local_leader, MPI_Comm peer_comm, int remote_leader, int tag,
                     MPI_Comm* newintercomm) {
    MakingLock lock;
    Comm* local = comm::from_handle(local_comm);
    if (!local) return bad_comm(local_comm);
    if (local->is_inter) return wrong_kind_of_comm(local);
    int wrong = MPI_SUCCESS;
    if (local_leader < 0 || local_leader >= local->size)
        wrong = fail(MPI_ERR_RANK, "local leader %d is not a rank of the local communicator, which has %d processes",
                     local_leader, local->size);
    else if (!newintercomm)
        wrong = null_pointer("newintercomm");
    collective::LeaderLink link{.remote_leader = remote_leader, .tag = tag};
    Comm* peer = local->rank == local_leader ? comm::from_handle(peer_comm) : nullptr;
    if (local->rank == local_leader) {
        if (!peer)
            wrong = fail(MPI_ERR_COMM, "the peer communicator is null or not valid; was it freed?");
        else if (remote_leader < 0 || remote_leader >= peer->peer_count)
            wrong = fail(MPI_ERR_RANK, "remote leader %d is not a rank of the peer communicator, which has %d processes",
                         remote_leader, peer->peer_count);
        else if (!valid_tag(tag))
            wrong = fail(MPI_ERR_TAG, "tag %d is not valid; use a number from 0 to the value of the attribute MPI_TAG_UB", tag);
        else
            link.channel = &peer->channel(comm::Plane::leaders);
    }
    const comm::ReferenceGuard kept(local);
    const comm::ReferenceGuard kept_peer(peer);
    Comm* made = nullptr;
    const int error = collective::run(collective::create_intercomm(*local, local_leader, link, made, wrong));
    return finish(local, error, made, newintercomm);
}

int Intercomm_merge(MPI_Comm intercomm, int high, MPI_Comm* newintracomm) {
    MakingLock lock;
    Comm* c = comm::from_handle(intercomm);
    if (!c) return bad_comm(intercomm);
    if (!c->is_inter) return wrong_kind_of_comm(c);
    const int wrong = newintracomm ? MPI_SUCCESS : null_pointer("newintracomm");
    const comm::ReferenceGuard kept(c);
    Comm* made = nullptr;
    const int error = collective::run(collective::merge(*c, high != 0, made, wrong));
    return finish(c, error, made, newintracomm);
}

int Comm_create_from_group(MPI_Group group, const char* stringtag, MPI_Info info, MPI_Errhandler errhandler,
                           MPI_Comm* newcomm) {
    MakingLock lock;
    FromGroup call(stringtag, info, errhandler, newcomm);
    if (call.lacks_name) return call.finish();
    comm::Group* g = comm::from_handle(group);
    const bool member = g && g->my_rank() != MPI_UNDEFINED;
    if (!g)
        call.error = not_a_group("group");
    else if (g->size() > 0 && !member)
        call.error = fail(MPI_ERR_GROUP, "this process is not in the group; only its members may call this function");
    if (!member) return call.finish();
    const comm::ReferenceGuard kept(g);
    call.error = collective::run(collective::create_from_group(*g, stringtag, call.handler, call.made, call.error));
    return call.finish();
}

int Intercomm_create_from_groups(MPI_Group local_group, int local_leader, MPI_Group remote_group, int remote_leader,
                                 const char* stringtag, MPI_Info info, MPI_Errhandler errhandler, MPI_Comm* newintercomm) {
    MakingLock lock;
    FromGroup call(stringtag, info, errhandler, newintercomm);
    if (call.lacks_name) return call.finish();
    comm::Group* local = comm::from_handle(local_group);
    if (!local || local->my_rank() == MPI_UNDEFINED) {
        call.error = not_a_group("local group");
        return call.finish();
    }
    if (local_leader < 0 || local_leader >= local->size())
        call.error = fail(MPI_ERR_RANK, "local leader %d is not a rank of the local group, which has %d processes",
                          local_leader, local->size());
    collective::RemoteLeader leader{nullptr, remote_leader};
    if (local->my_rank() == local_leader) {
        comm::Group* remote = comm::from_handle(remote_group);
        if (!remote)
            call.error = not_a_group("remote group");
        else if (remote_leader < 0 || remote_leader >= remote->size())
            call.error = fail(MPI_ERR_RANK, "remote leader %d is not a rank of the remote group, which has %d processes",
                              remote_leader, remote->size());
        else
            leader.group = remote;
    }
    const comm::ReferenceGuard kept(local);
    const comm::ReferenceGuard kept_remote(leader.group);
    call.error = collective::run(
        collective::create_intercomm_from_groups(*local, local_leader, leader, stringtag, call.handler, call.made, call.error));
    return call.finish();
}

}  // namespace starling::mpi
