// Processes die at random moments while all save several blocks, one or two in each round. The survivors move the store and find the latest
// version of all blocks. Usage: kills SEED
#include "../mpi/death.h"
#include "blocks.h"

static uint64_t state;

int main(int argc, char** argv) {
    int n, round = 0;
    MPI_Comm comm;
    starling_keep store;
    OK(MPI_Init(&argc, &argv));
    CHECK(argc == 2, "usage: mpiexec --enable-recovery -n N kills SEED");
    test_seed = strtoull(argv[1], NULL, 10);
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    OK(MPI_Comm_size(comm, &n));
    KEEP_OK(starling_keep_create(comm, STARLING_KEEP_UNBOUNDED, &store));
    long long version = 0;
    while (n > 1) {
        int me;
        OK(MPI_Comm_rank(comm, &me));
        state = test_seed * 1000 + (uint64_t)++round;
        // Two that are not partners of each other: on one host a process's partner is the next one.
        const int doomed = random_below(&state, n), other = n > 4 ? (doomed + 2) % n : doomed;
        for (int name = 0; name < kNameCount; ++name) KEEP_OK(save(store, name, me, version));
        if (me == other) state += 77;
        const int left = n - (doomed == other ? 1 : 2);
        if (me == doomed || me == other) die_within(&state, round % 3 ? 3000 : 20000);
        while (n > left) {
            save_until_failure(store, comm, version + 1);
            move_to_living(store, &comm);
            OK(MPI_Comm_size(comm, &n));
            CHECK(n >= left, "only %d processes live, but %d should", n, left);
            if (n == left) version = expect_latest(store, comm) + 1;
        }
    }
    KEEP_OK(starling_keep_free(&store));
    OK(MPI_Comm_free(&comm));
    OK(MPI_Finalize());
    printf("one is left after %d rounds\n", round);
    return 0;
}
