// Hosts are lost one after the other while all processes save blocks. The rest finds every block each time, because copies are on different
// hosts. Usage: host_losses LOSSES RANKS, the number of losses and of ranks on each host
#include "blocks.h"

/// Rank 0 asks for the loss of a host when all have ended the saves that must succeed: a member that still waits for the result would get an
/// error if another one revoked the communicator.
static void tell_when_all_have_saved(MPI_Comm comm, int rank, int n, int loss) {
    if (rank) OK(MPI_Send(NULL, 0, MPI_BYTE, 0, 7, comm));
    for (int other = 1; rank == 0 && other < n; ++other) OK(MPI_Recv(NULL, 0, MPI_BYTE, other, 7, comm, MPI_STATUS_IGNORE));
    if (rank == 0) printf("%d processes save after %d losses\n", n, loss);
    fflush(stdout);
}

int main(int argc, char** argv) {
    int n, rank;
    MPI_Comm comm;
    starling_keep store;
    OK(MPI_Init(&argc, &argv));
    CHECK(argc == 3, "usage: mpiexec --enable-recovery -n N host_losses LOSSES RANKS");
    const int losses = atoi(argv[1]), ranks = atoi(argv[2]);
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    OK(MPI_Comm_size(comm, &n));
    KEEP_OK(starling_keep_create(comm, STARLING_KEEP_UNBOUNDED, &store));
    long long version = 0;
    for (int loss = 0; loss <= losses; ++loss) {
        OK(MPI_Comm_rank(comm, &rank));
        for (int name = 0; name < kNameCount; ++name) KEEP_OK(save(store, name, rank, version));
        tell_when_all_have_saved(comm, rank, n, loss);
        const int left = loss < losses ? n - ranks : n;
        while (n > left) {
            save_until_failure(store, comm, version + 1);
            move_to_living(store, &comm);
            OK(MPI_Comm_size(comm, &n));
        }
        version = expect_latest(store, comm) + 1;
    }
    KEEP_OK(starling_keep_free(&store));
    OK(MPI_Comm_free(&comm));
    OK(MPI_Finalize());
    return 0;
}
