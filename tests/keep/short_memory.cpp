// Each allocation of the store fails once in one process, in saves, moves and saves beyond a bound. Every call ends with the same result on all
// processes, and the store has its blocks afterwards.
#include <dlfcn.h>

#include "blocks.h"

namespace {

int rank, size;
int allocations, failing;  // of the store's allocations the one with this number fails; 0: none

bool is_of_store(void* caller) {
    Dl_info info;
    return dladdr(caller, &info) && info.dli_fname && strstr(info.dli_fname, "libstarling_keep");
}

}  // namespace

/// The library's operator new calls this function too.
extern "C" void* malloc(size_t bytes) {
    static const auto next = reinterpret_cast<void* (*)(size_t)>(dlsym(RTLD_NEXT, "malloc"));
    if (failing && is_of_store(__builtin_return_address(0)) && ++allocations == failing) return nullptr;
    return next(bytes);
}

namespace {

/// Calls `function` once for each allocation that may fail in one process, until none has failed. It gets a number and returns an error class.
template <class Function, class Check>
void fail_each_allocation(int doomed, Function function, Check check) {
    for (int number = 1, has_failed = 1; has_failed; ++number) {
        allocations = 0, failing = rank == doomed ? number : 0;
        const int code = function(number);
        has_failed = failing && allocations >= failing;
        failing = 0;
        expect_same(code, MPI_COMM_WORLD);
        OK(MPI_Bcast(&has_failed, 1, MPI_INT, doomed, MPI_COMM_WORLD));
        check(number, code, has_failed);
        CHECK(number > 1 || has_failed, "no allocation has failed");
    }
}

/// A communicator in which the ranks are the other way round, so that a move sends every block.
MPI_Comm reversed() {
    MPI_Comm comm;
    OK(MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm));
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    return comm;
}

void expect_blocks(starling_keep store, long long version) {
    EXPECT_INT(latest_of(store, 0), version);
    for (int owner = 0; owner < size; ++owner) expect_block(store, 0, owner, version);
}

void test_saves(int doomed) {
    starling_keep store;
    KEEP_OK(starling_keep_create(MPI_COMM_WORLD, STARLING_KEEP_UNBOUNDED, &store));
    KEEP_OK(save(store, 0, rank, 1));
    long long latest = 1;
    fail_each_allocation(
        doomed, [&](int) { return save(store, 0, rank, latest + 1); },
        [&](int, int code, int has_failed) {
            CHECK(code || !has_failed, "a save without memory has succeeded");
            if (!code) ++latest;
            KEEP_OK(starling_keep_move(store, MPI_COMM_WORLD));
            expect_blocks(store, latest);
            KEEP_OK(save(store, 0, rank, ++latest));
        });
    KEEP_OK(starling_keep_free(&store));
}

void test_moves(int doomed) {
    starling_keep store;
    MPI_Comm other = reversed();
    int refused = 0;
    KEEP_OK(starling_keep_create(MPI_COMM_WORLD, STARLING_KEEP_UNBOUNDED, &store));
    for (int version = 1; version < 3; ++version) KEEP_OK(save(store, 0, rank, version));
    fail_each_allocation(
        doomed, [&](int) { return starling_keep_move(store, other); },
        [&](int, int code, int has_failed) {
            // A sort of ranks goes on without its buffer.
            CHECK(!code || (has_failed && code == MPI_ERR_NO_MEM), "%s", starling_keep_message());
            refused += code != MPI_SUCCESS;
            KEEP_OK(starling_keep_move(store, MPI_COMM_WORLD));
            expect_block(store, 0, doomed, 1);
            expect_blocks(store, 2);
        });
    CHECK(refused > 0, "no move has failed");
    KEEP_OK(starling_keep_free(&store));
    OK(MPI_Comm_free(&other));
}

/// The processes look for the one that lacks memory, while another one has none for the search.
void test_reports(int doomed) {
    starling_keep store;
    char memory[100] = "";
    KEEP_OK(starling_keep_create(MPI_COMM_WORLD, 4 * sizeof memory, &store));
    fail_each_allocation(
        doomed, [&](int) { return starling_keep_save(store, "a", memory, sizeof memory + (rank == size - 1) * 301, 1); },
        [&](int, int code, int has_failed) {
            CHECK(code == MPI_ERR_NO_MEM || (has_failed && code == MPIX_ERR_REVOKED), "%s", starling_keep_message());
            KEEP_OK(starling_keep_move(store, MPI_COMM_WORLD));
            EXPECT_INT(latest_of(store, -1), STARLING_KEEP_NONE);
            KEEP_OK(starling_keep_free(&store));
            KEEP_OK(starling_keep_create(MPI_COMM_WORLD, 4 * sizeof memory, &store));
        });
    KEEP_OK(starling_keep_free(&store));
}

}  // namespace

int main(int argc, char** argv) {
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    for (int doomed = 0; doomed < 2; ++doomed) {
        test_saves(doomed);
        test_moves(doomed);
        test_reports(doomed);
    }
    OK(MPI_Finalize());
    return 0;
}
