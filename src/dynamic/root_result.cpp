#include "dynamic/root_result.h"

#include "base/error.h"
#include "base/wire.h"
#include "collective/agreement.h"
#include "collective/channel_exchange.h"
#include "collective/collective.h"
#include "collective/collective_request.h"
#include "control/control.h"
#include "link/job.h"
#include "progress/engine.h"

namespace starling::dynamic {

namespace {
int broadcast(comm::Comm& comm, int root, void* bytes, int64_t size) {
    if (size == 0) return MPI_SUCCESS;
    const collective::View all = collective::View::all(collective::exchange_of(comm));
    return collective::run(collective::bcast(all, bytes, size, datatype::predefined(MPI_BYTE), root));
}
}  // namespace

int call_launcher(control::MessageKind kind, std::string_view payload, std::string& reply) {
    const link::Process& me = link::self();
    control::ControlCall call;
    if (const int error = control::ControlCall::start(me.job->segment(), me.rank, kind, payload, call)) return error;
    bool done = false;
    int error = MPI_SUCCESS;
    progress::wait_until(
        [&] {
            error = call.poll(done);
            return done || error;
        },
        {"the launcher", progress::Expected::later});
    if (!error) reply = call.reply();
    return error;
}

int agree(comm::Comm& comm, int error) {
    const collective::View all = collective::View::all(collective::exchange_of(comm));
    return collective::run(collective::agree(all, error, "inter-communicator"));
}

int broadcast_result(comm::Comm& comm, int root, RootResult& verdict) {
    if (comm.size > 1) {
        // The first message of a result. It needs no allocation, so the other members learn of an error even if there is no memory for the
        // rest.
        struct ResultHeader {
            int64_t error, bytes;
        } head{};
        std::string bytes;
        if (comm.rank == root) {
            try {
                bytes = Writer().string(verdict.text).string(verdict.result).take();
            } catch (const std::bad_alloc&) { verdict = {MPI_ERR_NO_MEM, {}, {}}; }
            head = {verdict.error, static_cast<int64_t>(bytes.size())};
        }
        if (const int error = broadcast(comm, root, &head, sizeof head)) return error;
        bytes.resize(static_cast<size_t>(head.bytes));
        if (const int error = broadcast(comm, root, bytes.data(), head.bytes)) return error;
        if (comm.rank != root) {
            Reader reader(bytes);
            verdict.error = static_cast<int>(head.error);
            verdict.text = reader.string();
            verdict.result = reader.string();
        }
    }
    if (verdict.error == MPI_ERR_NO_MEM && verdict.text.empty())
        return fail(MPI_ERR_NO_MEM, "the root process of the call is out of memory");
    return verdict.error ? fail(verdict.error, "%s", verdict.text.c_str()) : MPI_SUCCESS;
}

}  // namespace starling::dynamic
