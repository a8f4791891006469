// The part of a spawn that the children perform.
#include "dynamic/parent_comm.h"

#include "base/error.h"
#include "base/state.h"
#include "base/wire.h"
#include "comm/initial_errhandler.h"
#include "control/control.h"
#include "dynamic/dynamic.h"
#include "job/doorbell.h"
#include "link/peer.h"
#include "link/retry.h"

namespace starling::dynamic {

namespace {

// Pool index and context id of the communicator with the parents. Once it is freed or disconnected, another communicator may use its index.
STARLING_STATE uint32_t parent_index = 0;
STARLING_STATE uint64_t parent_context = 0;
STARLING_STATE link::Process parent_root;

bool decode(std::string_view bytes, Parents& parents) {
    Reader reader(bytes);
    parents.context = reader.number<uint64_t>();
    parents.root = reader.number<uint32_t>();
    parents.group = reader.string();
    return reader.done();
}

}  // namespace

std::string encode(const Parents& parents) {
    return Writer().number(parents.context).number(parents.root).string(parents.group).take();
}

comm::Comm* parent() {
    comm::Comm* comm = parent_root.job ? comm::comm_at(parent_index) : nullptr;
    return comm && comm->context() == parent_context ? comm : nullptr;
}

void start() {
    start_ports();
    const link::Process& me = link::self();
    job::JobSegment& segment = me.job->segment();
    if (segment.header().blob_size == 0) return;
    Parents parents;
    const std::string_view blob(reinterpret_cast<const char*>(segment.blob()), segment.header().blob_size);
    comm::Group* group = decode(blob, parents) ? comm::decode_group(parents.group) : nullptr;
    if (!group || parents.root >= static_cast<uint32_t>(group->size()))
        panic(
            "the parent processes sent an invalid description of themselves; use one version of Starling for parents and "
            "children");
    parent_root = group->at(static_cast<int>(parents.root));
    // Map the parents' jobs now, so that their end is noticed even if no message was exchanged.
    for (const comm::GroupRun& run : group->runs()) link::map_when_possible(*run.job);
    comm::Comm* comm = comm::make_intercomm(parents.context, comm::world()->local_group().retain(), static_cast<int>(me.rank),
                                            group, false, comm::initial_errhandler());
    comm->name = "MPI_COMM_PARENT";
    parent_context = parents.context;
    parent_index = comm->pool_index;
}

bool count_arrival() {
    job::JobHeader& header = link::self().job->segment().header();
    return header.arrived.fetch_add(1) + 1 == header.local_ranks;
}

void notify_parents_of_arrival() {
    const link::Process& me = link::self();
    job::JobSegment& segment = me.job->segment();
    const job::JobHeader& header = segment.header();
    if (!parent_root.job) return;
    if (header.several_hosts) {
        // The daemons count the hosts whose processes have arrived, and notify the parents after the last.
        control::ControlCall call;
        const control::JobQuery query{header.id, me.rank};
        control::ControlCall::start(segment, me.rank, control::MessageKind::arrived, encode(query), call);
    }
    if (!on_this_host(parent_root)) return;
    if (link::Peer* root = parent_root.job->peer(parent_root.rank)) job::ring(root->shm_path.region.doorbell());
}

}  // namespace starling::dynamic
