#include "mpi/environment/init.h"

#include "base/error.h"
#include "base/mutex.h"
#include "base/state.h"
#include "mpi/common/check.h"

namespace starling::mpi {

namespace {

// Whether MPI_Init and MPI_Finalize were called: each succeeds once only, independent of any MPI sessions.
STARLING_STATE Mutex beginning;
STARLING_STATE std::atomic<bool> world_started = false, world_ended = false;

int begin_world(int required) {
    const MutexGuard guard(beginning);
    if (world_ended)
        return fail(
            MPI_ERR_OTHER,
            "MPI cannot be initialized again after MPI_Finalize; call MPI_Finalize only at the end, or use MPI sessions "
            "instead of MPI_Init and MPI_Finalize");
    if (world_started) return fail(MPI_ERR_OTHER, "MPI is initialized already; call MPI_Init or MPI_Init_thread only once");
    if (const int error = runtime::acquire(required)) return error;
    world_started = true;
    return MPI_SUCCESS;
}

}  // namespace

int Init_thread(int*, char***, int required, int* provided) {
    if (required < MPI_THREAD_SINGLE || required > MPI_THREAD_MULTIPLE)
        return raise(nullptr,
                     fail(MPI_ERR_ARG, "%d is not a thread level: use MPI_THREAD_SINGLE to MPI_THREAD_MULTIPLE", required));
    if (const int error = begin_world(required)) return raise(nullptr, error);
    if (provided) *provided = runtime::thread_level();
    return MPI_SUCCESS;
}

int Init(int* argc, char*** argv) { return Init_thread(argc, argv, MPI_THREAD_SINGLE, nullptr); }

int Finalize() {
    if (phase != LibraryPhase::running || !world_started || world_ended) return not_running();
    if (!runtime::is_forked_child()) {
        Lock lock;
        const comm::ReferenceGuard kept(comm::self());
        kept->attributes.clear(comm::AttributeHolder(MPI_COMM_SELF));
    }
    runtime::release(true);
    world_ended = true;
    return MPI_SUCCESS;
}

int Initialized(int* flag) {
    if (!flag) return null_argument(nullptr, "flag");
    *flag = world_started;
    return MPI_SUCCESS;
}

int Finalized(int* flag) {
    if (!flag) return null_argument(nullptr, "flag");
    *flag = world_ended;
    return MPI_SUCCESS;
}

int Query_thread(int* provided) {
    if (phase != LibraryPhase::running) return not_running();
    if (!provided) return null_argument(nullptr, "provided");
    *provided = runtime::thread_level();
    return MPI_SUCCESS;
}

int Is_thread_main(int* flag) {
    if (phase != LibraryPhase::running) return not_running();
    if (!flag) return null_argument(nullptr, "flag");
    *flag = runtime::is_main_thread();
    return MPI_SUCCESS;
}

int Abort(MPI_Comm, int errorcode) {
    // The standard requires that at least the processes of the communicator's group end. A job cannot continue without some of its
    // processes, so all of its processes end.
    runtime::abort(errorcode);
}

}  // namespace starling::mpi
