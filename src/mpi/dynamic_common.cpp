#include "mpi/dynamic_common.h"

#include "base/error.h"
#include "base/wire.h"
#include "boot/control.h"
#include "collective/channel_exchange.h"
#include "collective/collective.h"
#include "collective/request.h"
#include "link/job.h"
#include "mpi/dynamic.h"
#include "progress/engine.h"

namespace starling::mpi {

namespace {
// The launcher ends the children of a job that crashes, unless they have parted.
void on_disconnect(comm::Comm& comm) {
    if (comm.spawned == 0 || comm.rank != 0) return;
    const boot::DisconnectNotice notice{comm.spawned, link::self().job->address().id};
    link::Job* child = link::job_with_id(notice.child);
    if (child && child->mapped() && child->segment().header().several_hosts == 0) {
        child->segment().header().parted.store(1, std::memory_order_release);
        return;
    }
    std::string reply;
    call_launcher(boot::MessageKind::disconnect, encode(notice), reply);
}
}  // namespace

int call_launcher(boot::MessageKind kind, std::string_view payload, std::string& reply) {
    const link::Process& me = link::self();
    boot::ControlCall call;
    if (const int error = boot::ControlCall::start(me.job->segment(), me.rank, kind, payload, call)) return error;
    bool done = false;
    int error = MPI_SUCCESS;
    progress::wait_until(
        [&] {
            error = call.poll(done);
            return done || error;
        },
        progress::Expected::later);
    if (!error) reply = call.reply();
    return error;
}

int spread(comm::Comm& comm, int root, std::string& bytes) {
    if (comm.size == 1) return MPI_SUCCESS;
    using collective::View;
    const datatype::Datatype& byte = datatype::predefined(MPI_BYTE);
    collective::Exchange& exchange = collective::exchange_of(comm);
    uint64_t size = bytes.size();
    int error = collective::run(collective::bcast(View::all(exchange), &size, sizeof size, byte, root));
    if (error) return error;
    bytes.resize(size);
    return collective::run(collective::bcast(View::all(exchange), bytes.data(), static_cast<int64_t>(size), byte, root));
}

int spread(comm::Comm& comm, int root, Verdict& verdict) {
    std::string bytes;
    if (comm.rank == root)
        bytes = Writer().number(verdict.error).string(verdict.text).string(verdict.result).take();
    if (const int error = spread(comm, root, bytes)) return error;
    if (comm.rank != root) {
        Reader reader(bytes);
        verdict.error = reader.number<int>();
        verdict.text = reader.string();
        verdict.result = reader.string();
    }
    return verdict.error ? fail(verdict.error, "%s", verdict.text.c_str()) : MPI_SUCCESS;
}

void note_spawned(comm::Comm& comm, boot::JobId child) {
    comm::on_disconnect = on_disconnect;
    comm.spawned = child;
}

}  // namespace starling::mpi
