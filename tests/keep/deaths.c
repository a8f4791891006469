// Ranks die at a step of a save: before the STEP-th call of MPI that the store makes in it. Usage: deaths MODE STEP
//   save     rank 1 dies in a save
//   pair     rank 1 dies in a save, and its partner in the next one, after a move
//   move     rank 1 dies in a save, and rank 4, which gets and sends no block, in the move
//   sender   the same with rank 0, whose block has no other copy before the move
//   receiver the same with rank 3, which gets the block of rank 1
//   both     rank 1 and its partner die in the same save, which loses rank 1's block
//   absent   rank 0 revokes the communicator, while the others save
#include "blocks.h"

static int step, last_step;  // the process dies at `last_step`, unless it is 0

static void count_step(void) {
    if (last_step && ++step == last_step) raise(SIGKILL);
}

// The store's calls of MPI come by here.
int MPI_Irecv(void* data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request* request) {
    count_step();
    return PMPI_Irecv(data, count, type, from, tag, comm, request);
}
int MPI_Irecv_c(void* data, MPI_Count count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request* request) {
    count_step();
    return PMPI_Irecv_c(data, count, type, from, tag, comm, request);
}
int MPI_Isend_c(const void* data, MPI_Count count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request* request) {
    count_step();
    return PMPI_Isend_c(data, count, type, to, tag, comm, request);
}
int MPI_Waitany(int count, MPI_Request* requests, int* index, MPI_Status* status) {
    count_step();
    return PMPI_Waitany(count, requests, index, status);
}
int MPI_Wait(MPI_Request* request, MPI_Status* status) {
    count_step();
    return PMPI_Wait(request, status);
}
int MPIX_Comm_shrink(MPI_Comm comm, MPI_Comm* result) {
    count_step();
    return PMPIX_Comm_shrink(comm, result);
}
int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm* result) {
    count_step();
    return PMPI_Comm_split_type(comm, type, key, info, result);
}
int MPI_Allgather(const void* mine, int n, MPI_Datatype type, void* all, int m, MPI_Datatype other, MPI_Comm comm) {
    count_step();
    return PMPI_Allgather(mine, n, type, all, m, other, comm);
}
int MPI_Allgatherv(const void* mine, int n, MPI_Datatype type, void* all, const int* counts, const int* places,
                   MPI_Datatype other, MPI_Comm comm) {
    count_step();
    return PMPI_Allgatherv(mine, n, type, all, counts, places, other, comm);
}
int MPI_Iallgather(const void* mine, int n, MPI_Datatype type, void* all, int m, MPI_Datatype other, MPI_Comm comm,
                   MPI_Request* request) {
    count_step();
    return PMPI_Iallgather(mine, n, type, all, m, other, comm, request);
}
int MPI_Iallreduce(const void* mine, void* all, int n, MPI_Datatype type, MPI_Op operation, MPI_Comm comm,
                   MPI_Request* request) {
    count_step();
    return PMPI_Iallreduce(mine, all, n, type, operation, comm, request);
}
int MPIX_Comm_agree(MPI_Comm comm, int* flag) {
    count_step();
    return PMPIX_Comm_agree(comm, flag);
}
int MPIX_Comm_iagree(MPI_Comm comm, int* flag, MPI_Request* request) {
    count_step();
    return PMPIX_Comm_iagree(comm, flag, request);
}
int MPI_Comm_free(MPI_Comm* comm) {
    count_step();
    return PMPI_Comm_free(comm);
}

static int world_rank, world_size;
static int dies_in_move;  // the step of a move at which this process dies, or 0

/// Moves the store until no more than `left` processes are in the communicator.
static void wait_for_deaths(starling_keep store, MPI_Comm* comm, int left) {
    int size;
    OK(MPI_Comm_size(*comm, &size));
    while (size > left) {
        move_to_living(store, comm);
        OK(MPI_Comm_size(*comm, &size));
    }
}

/// Prints that the process has come to the end of the calls in which it should die, and dies.
static void die_after_calls(void) {
    printf("rank %d has made %d steps in its calls, and dies after them\n", world_rank, step);
    fflush(stdout);
    raise(SIGKILL);
}

/// Saves a version of block 0. The doomed process dies at the step, or at the latest after the save. Moves the
/// store to the survivors, of which there are `left`, and returns whether the version counts.
static int save_and_die(starling_keep store, MPI_Comm* comm, int is_doomed, long long version, int at, int left) {
    int rank;
    OK(MPI_Comm_rank(*comm, &rank));
    step = 0, last_step = is_doomed ? at : 0;
    const int code = save(store, 0, rank, version);
    if (is_doomed) die_after_calls();
    step = 0, last_step = dies_in_move;
    CHECK(!code || code == MPIX_ERR_PROC_FAILED || code == MPIX_ERR_REVOKED, "%s", starling_keep_message());
    move_to_living(store, comm);
    if (dies_in_move) die_after_calls();
    wait_for_deaths(store, comm, left);
    const long long latest = latest_of(store, 0);
    expect_same(latest, *comm);
    if (code == MPI_SUCCESS) EXPECT_INT(latest, version);
    if (code == MPIX_ERR_PROC_FAILED) CHECK(latest < version, "a save has failed, but its version %lld counts", version);
    return latest == version;
}

/// Checks all blocks of a version that has been saved by `owners` processes; `lost` is an owner whose block is lost, or -1.
static void expect_version(starling_keep store, int name, long long version, int owners, int lost) {
    for (int owner = 0; owner < owners; ++owner) {
        if (owner != lost) {
            expect_block(store, name, owner, version);
            continue;
        }
        // All members get the error, also those that want no block or another one.
        size_t bytes = 0;
        long long found = version;
        const int wanted = world_rank % 2 ? owner : MPI_PROC_NULL;
        const int code = starling_keep_fetch(store, kNames[name], world_rank == 0 ? owner : wanted, NULL, &bytes, &found);
        EXPECT_INT(code, STARLING_KEEP_LOST);
        char text[100];
        snprintf(text, sizeof text, "version %lld of block \"%s\" is lost of owner %d:", version, kNames[name], lost);
        CHECK(strstr(starling_keep_message(), text), "%s", starling_keep_message());
    }
}

/// Returns whether the blocks of `owner` are lost, in all versions that the processes keep and for all processes alike.
static int is_lost(starling_keep store, int owner, MPI_Comm comm) {
    size_t bytes = 0;
    long long version = latest_of(store, 1);
    const int code = starling_keep_fetch(store, kNames[1], owner, NULL, &bytes, &version);
    CHECK(!code || code == STARLING_KEEP_LOST, "%s", starling_keep_message());
    expect_same(code, comm);
    return code == STARLING_KEEP_LOST;
}

/// Rank 0 does not take part in a save, and all others notice. Nobody dies.
static void stay_away(starling_keep store, MPI_Comm* comm) {
    // Rank 0 revokes when all others have ended their calls.
    for (int i = 1; world_rank == 0 && i < world_size; ++i)
        OK(MPI_Recv(NULL, 0, MPI_INT, MPI_ANY_SOURCE, 7, *comm, MPI_STATUS_IGNORE));
    if (world_rank) OK(MPI_Send(NULL, 0, MPI_INT, 0, 7, *comm));
    if (world_rank == 0)
        OK(MPIX_Comm_revoke(*comm));
    else
        EXPECT_INT(save(store, 0, world_rank, 2), MPIX_ERR_REVOKED);
    if (world_rank) EXPECT_INT(save(store, 0, world_rank, 2), MPIX_ERR_REVOKED);
    move_to_living(store, comm);
    EXPECT_INT(latest_of(store, 0), 1);
    for (long long version = latest_of(store, 1) - 1; version < 2; ++version) expect_version(store, 1, version, world_size, -1);
    expect_version(store, 0, 1, world_size, -1);
    KEEP_OK(save(store, 0, world_rank, 2));
    expect_version(store, 0, 2, world_size, -1);
}

int main(int argc, char** argv) {
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &world_rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &world_size));
    CHECK(argc == 3 && world_size >= 5, "usage: mpiexec --enable-recovery -n 5 deaths MODE STEP");
    const char* mode = argv[1];
    const int is_pair = !strcmp(mode, "pair"), is_both = !strcmp(mode, "both");
    const int is_sender = !strcmp(mode, "sender"), is_receiver = !strcmp(mode, "receiver");
    const int is_move = is_sender || is_receiver || !strcmp(mode, "move");
    const int at = atoi(argv[2]), partner = 2, third = is_sender ? 0 : is_receiver ? 3 : 4;
    test_seed = (uint64_t)at;
    MPI_Comm comm;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    starling_keep store;
    KEEP_OK(starling_keep_create(comm, STARLING_KEEP_UNBOUNDED, &store));
    for (int version = 0; version < 2; ++version)
        for (int name = 0; name < 2; ++name) KEEP_OK(save(store, name, world_rank, version));
    int lost = is_both ? 1 : -1;
    if (!strcmp(mode, "absent")) {
        stay_away(store, &comm);
    } else {
        dies_in_move = is_move && world_rank == third ? at : 0;
        const int counts = save_and_die(store, &comm, world_rank == 1 || (is_both && world_rank == partner), 2, at,
                                        world_size - 1 - (is_move || is_both));
        EXPECT_INT(latest_of(store, 0), counts ? 2 : 1);
        EXPECT_INT(latest_of(store, 1), 1);
        EXPECT_INT(latest_of(store, -1), 1);
        if (is_pair) {
            // The version belongs to the smaller communicator.
            const int more = save_and_die(store, &comm, world_rank == partner, 3, at, world_size - 2);
            EXPECT_INT(latest_of(store, 0), more ? 3 : 1 + counts);
            if (more) expect_version(store, 0, 3, world_size - 1, -1);
        }
        if (is_sender && is_lost(store, third, comm)) lost = third;
        const int latest = (int)latest_of(store, 0),
                  first_kept = latest > 1 + counts ? 1 + counts : 1 + counts - (counts && !is_pair);
        for (int version = first_kept; version <= 1 + counts; ++version) expect_version(store, 0, version, world_size, lost);
        for (int version = 0; version < 2; ++version) expect_version(store, 1, version, world_size, lost);
    }
    KEEP_OK(starling_keep_free(&store));
    OK(MPI_Comm_free(&comm));
    int rank;
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Finalize());
    printf("rank %d has found every block%s\n", rank, is_sender && lost >= 0 ? " but one" : "");
    return 0;
}
