// Processes die one after the other, and substitutes with their ranks join the survivors. In the end no process is left that has saved the first
// version, and all its blocks are there. In a round a substitute dies too while it creates its store. Usage: substitutes
#include "../mpi/dynamic.h"
#include "blocks.h"

static int size, dies_at_gather, store_rank;

int MPI_Allgather(const void* mine, int n, MPI_Datatype type, void* all, int m, MPI_Datatype other, MPI_Comm comm) {
    if (dies_at_gather) raise(SIGKILL);
    return PMPI_Allgather(mine, n, type, all, m, other, comm);
}

/// What the survivors tell a substitute: which rank it has, the round, and whether it dies.
struct Task {
    int rank, round, dies;
};

/// Returns the communicator of survivors and one substitute, in the order of the ranks, in which this process has `rank`.
static MPI_Comm join(MPI_Comm inter, int is_substitute, int rank) {
    MPI_Comm merged, all;
    OK(MPI_Intercomm_merge(inter, is_substitute, &merged));
    OK(MPI_Comm_split(merged, 0, rank, &all));
    OK(MPI_Comm_free(&merged));
    OK(MPI_Comm_disconnect(&inter));
    OK(MPI_Comm_set_errhandler(all, MPI_ERRORS_RETURN));
    return all;
}

/// In survivors: starts a substitute of rank `missing` and moves the store. Returns the store's error.
static int replace(starling_keep store, MPI_Comm* comm, int rank, const struct Task* task) {
    MPI_Comm living;
    OK(MPIX_Comm_revoke(*comm));
    OK(MPIX_Comm_shrink(*comm, &living));
    OK(MPI_Comm_free(comm));
    int me;
    OK(MPI_Comm_rank(living, &me));
    MPI_Comm inter = spawn_self("substitute", 1, living);
    OK(MPI_Bcast((void*)task, 3, MPI_INT, me ? MPI_PROC_NULL : MPI_ROOT, inter));
    OK(MPI_Comm_free(&living));
    *comm = join(inter, 0, rank);
    return starling_keep_move(store, *comm);
}

static void work(starling_keep store, MPI_Comm comm, int rank, int round) {
    for (; round < size; ++round) {
        // A rank dies; its partner dies in the next round.
        int code = MPI_SUCCESS;
        if (rank == round) raise(SIGKILL);
        while (!code) code = save(store, 1, rank, round + 1);
        CHECK(code == MPIX_ERR_PROC_FAILED || code == MPIX_ERR_REVOKED, "%s", starling_keep_message());
        struct Task task = {round, round + 1, round == 1};
        code = replace(store, &comm, rank, &task);
        EXPECT_INT(code, task.dies ? MPIX_ERR_PROC_FAILED : MPI_SUCCESS);
        task.dies = 0;
        if (code) KEEP_OK(replace(store, &comm, rank, &task));
        for (int owner = 0; owner < size; ++owner) expect_block(store, 0, owner, 0);
        for (int owner = 0; owner < size; ++owner) expect_block(store, 1, owner, latest_of(store, 1));
        KEEP_OK(save(store, 1, rank, latest_of(store, 1) + 1));
    }
    for (int owner = 0; owner < size; ++owner) expect_block(store, 0, owner, 0);
    KEEP_OK(starling_keep_free(&store));
    OK(MPI_Comm_free(&comm));
    store_rank = rank;
}

/// A substitute has the block of its rank in its own memory, and the others' by messages.
static void substitute(MPI_Comm parent) {
    struct Task task;
    starling_keep store;
    OK(MPI_Bcast(&task, 3, MPI_INT, 0, parent));
    dies_at_gather = task.dies;
    MPI_Comm comm = join(parent, 1, task.rank);
    OK(MPI_Comm_size(comm, &size));
    KEEP_OK(starling_keep_create(comm, STARLING_KEEP_UNBOUNDED, &store));
    for (int owner = 0; owner < size; ++owner) expect_block(store, 0, owner, 0);
    for (int owner = 0; owner < size; ++owner) expect_block(store, 1, owner, latest_of(store, 1));
    KEEP_OK(save(store, 1, task.rank, latest_of(store, 1) + 1));
    work(store, comm, task.rank, task.round);
}

int main(int argc, char** argv) {
    MPI_Comm parent, comm;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_get_parent(&parent));
    if (parent != MPI_COMM_NULL) {
        substitute(parent);
    } else {
        int rank;
        starling_keep store;
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
        OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
        OK(MPI_Comm_rank(comm, &rank));
        OK(MPI_Comm_size(comm, &size));
        KEEP_OK(starling_keep_create(comm, STARLING_KEEP_UNBOUNDED, &store));
        for (int name = 0; name < 2; ++name) KEEP_OK(save(store, name, rank, 0));
        work(store, comm, rank, 0);
    }
    OK(MPI_Finalize());
    printf("rank %d has found every block\n", store_rank);
    return 0;
}
