// Replacement of failed processes (MPIX_Comm_replace): the survivors shrink their communicator, spawn substitutes, and create a communicator
// with them that has the old size and the survivors' old ranks.
#include <string>

#include "base/error.h"
#include "collective/collective_request.h"
#include "collective/communicator/creation.h"
#include "collective/survivors/agreements.h"
#include "collective/survivors/substitution.h"
#include "comm/reference_guard.h"
#include "dynamic/dynamic.h"
#include "dynamic/root_result.h"
#include "link/peer.h"
#include "message/revocation.h"

namespace starling::dynamic {

namespace {

/// The survivor that starts the substitutes.
constexpr int kRoot = 0;

/// Starts the substitutes. All survivors get the communicator with them, or none.
int spawn_substitutes(comm::Comm& living, int wanted, const ReadCommand& read, const collective::ErrorHere& mine,
                      comm::Comm*& inter) {
    std::vector<ErrorCodeRun> codes;
    comm::Comm* made = nullptr;
    int error = spawn(
        living, kRoot, [&](Commands& commands) { return read(wanted, commands); }, codes, made);
    if (!error && made->peer_count != wanted)
        error = fail(MPI_ERR_SPAWN, "only %d of %d substitutes could be started", made->peer_count, wanted);
    error = collective::run(collective::agree_in_spite_of_failures(living, mine.or_else(error)));
    inter = made;
    return error;
}

/// Ends the substitutes after an error, and returns the error. Substitutes that wait for the survivors learn of it by the revocation;
/// those that have not called MPI_Init yet are ended by the launcher, which accepts this request from the job that has started them.
int dismiss(comm::Comm& inter, const comm::Comm& living, int error) {
    const std::string text(failure_text());
    message::revoke(inter.collective);
    std::string reply;
    if (link::self().job == living.local_group().at(kRoot).job)
        call_launcher(control::MessageKind::forsake, encode(control::JobQuery{inter.spawned, 0}), reply);
    return fail(error, "%s", text.c_str());
}

}  // namespace

int replace(comm::Comm& comm, const ReadCommand& read, int error_here, comm::Comm*& made) {
    const collective::ErrorHere mine(error_here);
    comm::Comm* living = nullptr;
    if (const int error = collective::run(collective::shrink(comm, living))) return mine.or_else(error);
    const int lost = comm.size - living->size;
    if (lost == 0) {
        const int error = collective::run(collective::agree_in_spite_of_failures(*living, mine.or_else(MPI_SUCCESS)));
        if (error) living->release();
        if (!error) made = living;
        return error;
    }
    comm::Comm* inter = nullptr;
    int error = spawn_substitutes(*living, lost, read, mine, inter);
    if (!error) error = collective::run(collective::join_substitutes(*inter, comm.rank, made, MPI_SUCCESS));
    if (error && inter) error = dismiss(*inter, *living, error);
    if (inter) inter->release();
    living->release();
    return error;
}

int join_survivors(comm::Comm& parents, int error_here, comm::Comm*& made) {
    return collective::run(collective::join_substitutes(parents, collective::kSubstitute, made, error_here));
}

}  // namespace starling::dynamic
