#include "comm/comm.h"

#include <new>

#include "base/error.h"
#include "base/kept_memory.h"
#include "base/no_destroy.h"
#include "base/pool.h"
#include "base/state.h"
#include "comm/initial_errhandler.h"
#include "comm/wait_report.h"
#include "message/closed_contexts.h"
#include "progress/wait_report.h"

namespace starling::comm {

STARLING_STATE std::atomic<Comm*> predefined[4];
STARLING_STATE decltype(on_disconnect) on_disconnect = nullptr;

namespace {

STARLING_STATE NoDestroy<Pool<Comm>> comm_pool_storage;
constinit auto& comm_pool = comm_pool_storage.value;

// Returns both groups of an inter-communicator in the order on which all members agree.
Group* number_all(Group* local, Group* remote, bool local_first) {
    if (!remote) return nullptr;
    return local_first ? concatenate(*local, *remote) : concatenate(*remote, *local);
}

void note_revocation(message::MatchContext& channel) {
    auto* const comm = const_cast<Comm*>(static_cast<const Comm*>(channel.owner));
    if (!comm) return;
    if (comm->collective_state) comm->collective_state->revoke();
    if (comm->on_revoked && &channel == &comm->collective) comm->on_revoked(*comm);
}

uint64_t on_plane(uint64_t context, Plane plane) { return context | static_cast<uint64_t>(plane); }

}  // namespace

bool is_drawn(uint64_t context) {
    const job::JobId job = link::self().job->address().id;
    for (uint64_t number = kWorldNumber; number <= kShmemSharedNumber; ++number)
        if (context == make_context(job, number)) return false;
    return true;
}

uint64_t new_context() {
    const job::JobSegment& segment = link::self().job->segment();
    const uint64_t number = segment.draw_context();
    return number == job::kNoNumber ? kNoContext : make_context(segment.header().id, number);
}

int check_context(uint64_t context) {
    if (context != kNoContext) return MPI_SUCCESS;
    return fail(MPI_ERR_OTHER,
                "a host of this job has made 2^40 communicators, and their ids are used up: start a new job, "
                "and reuse communicators instead of creating new ones");
}

Comm::Comm(uint64_t context, Group* local, int my_rank, Group* remote, bool first, Errhandler* handler)
    : local_(local),
      remote_(remote),
      all_(number_all(local, remote, first)),
      rank(my_rank),
      size(local->size()),
      peer_count(remote ? remote->size() : local->size()),
      is_inter(remote != nullptr),
      local_first(first),
      point_to_point(context, remote ? *remote : *local, my_rank),
      collective(on_plane(context, Plane::collective), all_ ? *all_ : *local,
                 remote && !first ? remote->size() + my_rank : my_rank),
      errhandler((handler ? handler : errors_are_fatal())->retain()) {
    point_to_point.connect_hint = &hints.connect;
    point_to_point.owner = this;
    collective.owner = this;
    message::revoke_if_early(collective);
}

Comm::~Comm() { errhandler->release(); }

message::MatchContext& Comm::channel(Plane plane) {
    auto& channel = others_[static_cast<uint32_t>(plane) - kFirstOther];
    if (!channel) {
        channel = std::make_unique<message::MatchContext>(on_plane(context(), plane), peers(), rank);
        if (collective.revoked()) channel->set_revoked(false);
    }
    return *channel;
}

void Comm::set_errhandler(Errhandler* handler) {
    replace(errhandler, handler);
    errhandler_was_set = true;
}

void Comm::destroy() {
    Group* const groups[] = {local_, remote_, all_};
    const uint64_t id = context();
    comm_pool.destroy(this);
    if (is_drawn(id)) message::retire_context(id);
    for (Group* group : groups)
        if (group) group->release();
}

Comm* make_intracomm(uint64_t context, Group* group, int my_rank, Errhandler* errhandler) try {
    return comm_pool.create(context, group, my_rank, nullptr, true, errhandler);
} catch (const std::bad_alloc&) {
    group->release();
    throw;
}

Comm* make_intercomm(uint64_t context, Group* local, int my_rank, Group* remote, bool local_first, Errhandler* errhandler) try {
    return comm_pool.create(context, local, my_rank, remote, local_first, errhandler);
} catch (const std::bad_alloc&) {
    local->release();
    remote->release();
    throw;
}

void drop(Comm* comm) {
    comm->magic = 0;
    comm->release();
}

void make_predefined() {
    progress::teller_upcalls.communicator = describe_communicator;
    message::on_revoked = note_revocation;
    KeptMemory::fill();
    const link::Process me = link::self();
    const auto& header = me.job->segment().header();
    GroupBuilder world, self;
    world.add(GroupRun{me.job, 0, 1, static_cast<int32_t>(header.size)});
    self.add(me);
    Comm* everyone =
        make_intracomm(make_context(header.id, kWorldNumber), world.build(), static_cast<int>(me.rank), initial_errhandler());
    everyone->name = "MPI_COMM_WORLD";
    Comm* alone = make_intracomm(make_context(header.id, kSelfNumber), self.build(), 0, initial_errhandler());
    alone->name = "MPI_COMM_SELF";
    predefined[1] = everyone;
    predefined[2] = alone;
}

void drop_predefined() {
    for (auto& comm : predefined)
        if (Comm* const gone = comm.exchange(nullptr)) drop(gone);
}

std::size_t live_communicators() { return comm_pool.live(); }

Comm* comm_at(uint32_t pool_index) { return comm_pool.at(pool_index); }

}  // namespace starling::comm
