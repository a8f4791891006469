// The functions of starling_keep.h: they check arguments and turn a lack of memory into an error.
#include <cstring>
#include <memory>
#include <new>
#include <string>

#include "keep/fetch.h"
#include "keep/message.h"
#include "keep/move.h"
#include "keep/save.h"
#include "keep/starling_keep.h"
#include "keep/store_call.h"
#include "mpi-ext.h"

using namespace starling::keep;

namespace {

int check_store(starling_keep store) {
    return store ? MPI_SUCCESS : fail(MPI_ERR_ARG, "the store is NULL; create one with starling_keep_create");
}

int check_name(const char* name) {
    if (!name || !*name)
        return fail(MPI_ERR_ARG, "the name of a block is empty; choose one of 1 to %d bytes", STARLING_KEEP_MAX_NAME);
    if (std::strlen(name) > STARLING_KEEP_MAX_NAME)
        return fail(MPI_ERR_ARG, "the name \"%.70s\" has more than %d bytes; choose a shorter one", name,
                    STARLING_KEEP_MAX_NAME);
    return MPI_SUCCESS;
}

int check_comm(MPI_Comm comm) {
    int is_inter = 0;
    if (comm == MPI_COMM_NULL || MPI_Comm_test_inter(comm, &is_inter) || is_inter)
        return fail(MPI_ERR_COMM, "a store needs an intra-communicator; merge an inter-communicator with MPI_Intercomm_merge");
    return MPI_SUCCESS;
}

/// Returns an error if an earlier call has ended before its agreement, which only a move can end, or a move has begun.
int check_ready(starling_keep store) {
    return store->pending.request == MPI_REQUEST_NULL && !store->is_closed ? MPI_SUCCESS : report_failure(MPIX_ERR_REVOKED);
}

template <class Function>
int call_checked(Function function) {
    try {
        return function();
    } catch (const std::bad_alloc&) { return fail(MPI_ERR_NO_MEM, "this process has no memory left"); }
}

}  // namespace

#define KEEP_EXPORT extern "C" [[gnu::visibility("default")]]

KEEP_EXPORT int starling_keep_create(MPI_Comm comm, size_t bound, starling_keep* store) {
    if (!store) return fail(MPI_ERR_ARG, "the pointer to the new store is NULL");
    *store = nullptr;
    if (const int error = check_comm(comm)) return error;
    return call_checked([&] {
        auto created = std::make_unique<starling_keep_store>();
        created->bound = bound;
        const MoveResult result = move_store(*created, comm);
        if (result.has_moved) *store = created.release();
        return result.error;
    });
}

KEEP_EXPORT int starling_keep_save(starling_keep store, const char* name, const void* address, size_t bytes,
                                   long long version) {
    if (const int error = check_store(store)) return error;
    if (const int error = check_name(name)) return error;
    if (version < 0) return fail(MPI_ERR_ARG, "version %lld is negative; versions are numbers from 0 on", version);
    if (const int error = check_ready(store)) return error;
    return call_checked([&] { return save_block(*store, name, address, bytes, version); });
}

KEEP_EXPORT int starling_keep_fetch(starling_keep store, const char* name, int owner, void* address, size_t* bytes,
                                    long long* version) {
    if (const int error = check_store(store)) return error;
    if (const int error = check_name(name)) return error;
    if (!bytes || !version) return fail(MPI_ERR_ARG, "the pointer to the length or to the version is NULL");
    if (const int error = check_ready(store)) return error;
    return call_checked([&] {
        FetchedBlock wanted{owner, *version, address, *bytes};
        const int error = fetch_block(*store, name, wanted);
        if (error && error != MPI_ERR_TRUNCATE) return error;
        *version = wanted.version;
        *bytes = wanted.bytes;
        return error;
    });
}

KEEP_EXPORT int starling_keep_latest(starling_keep store, const char* name, long long* version, int* owners) {
    if (const int error = check_store(store)) return error;
    if (!version) return fail(MPI_ERR_ARG, "the pointer to the version is NULL");
    if (name)
        if (const int error = check_name(name)) return error;
    return call_checked([&] {
        const KeptVersion* latest = name ? store->find(name, STARLING_KEEP_LATEST) : store->find_common();
        *version = latest ? latest->number : STARLING_KEEP_NONE;
        if (owners) *owners = latest ? latest->owners : 0;
        return MPI_SUCCESS;
    });
}

KEEP_EXPORT int starling_keep_move(starling_keep store, MPI_Comm comm) {
    if (const int error = check_store(store)) return error;
    if (const int error = check_comm(comm)) return error;
    return call_checked([&] { return move_store(*store, comm).error; });
}

KEEP_EXPORT int starling_keep_free(starling_keep* store) {
    if (!store) return fail(MPI_ERR_ARG, "the pointer to the store is NULL");
    if (!*store) return MPI_SUCCESS;
    settle(**store);
    MPI_Comm_free(&(*store)->wire);
    delete *store;
    *store = nullptr;
    return MPI_SUCCESS;
}

KEEP_EXPORT const char* starling_keep_message(void) { return last_message(); }
