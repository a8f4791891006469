// Hosts are lost, and after each loss the survivors start substitutes for the failed processes until the communicator has its old size again.
// Usage: hosts_replaced LOSSES [time]. With `time` each process prints when it got an error and when the communicator was whole again.
#include <mpi-ext.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int rank = -1, size, with_times;

static void report(const char* event, int loss) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (with_times) printf("%lld.%06ld rank %d %s %d\n", (long long)now.tv_sec, now.tv_nsec / 1000, rank, event, loss);
    fflush(stdout);
}

static void check(int code, const char* call) {
    if (code == MPI_SUCCESS) return;
    char text[MPI_MAX_ERROR_STRING];
    int length;
    MPI_Error_string(code, text, &length);
    fprintf(stderr, "FAIL: rank %d: %s: %s\n", rank, call, text);
    exit(1);
}

/// Returns whether all members have got the number of losses, the highest that any of them knows, in `losses`.
static int agree_on_losses(MPI_Comm comm, int* losses) {
    int most = 0;
    const int error = MPI_Allreduce(losses, &most, 1, MPI_INT, MPI_MAX, comm);
    int good = error == MPI_SUCCESS;
    if (MPIX_Comm_agree(comm, &good) != MPI_SUCCESS || !good) return 0;
    *losses = most;
    return 1;
}

/// Replaces failed members until a replacement has succeeded and all members know the number of losses.
static void replace(MPI_Comm* comm, char* command, char** argv, int* losses) {
    do {
        MPI_Comm whole;
        while (MPIX_Comm_replace(*comm, command, argv, MPI_INFO_NULL, &whole) != MPI_SUCCESS) continue;
        if (*comm != MPI_COMM_NULL) check(MPI_Comm_free(comm), "MPI_Comm_free");
        *comm = whole;
        check(MPI_Comm_set_errhandler(*comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    } while (!agree_on_losses(*comm, losses));
    check(MPI_Comm_rank(*comm, &rank), "MPI_Comm_rank");
    check(MPI_Comm_size(*comm, &size), "MPI_Comm_size");
}

/// Every member has the rank and the number of members that it should have.
static int is_whole(MPI_Comm comm, int expected) {
    int sum = 0;
    const int error = MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
    return error == MPI_SUCCESS && size == expected && sum == size * (size - 1) / 2;
}

int main(int argc, char** argv) {
    MPI_Comm comm, parent;
    int losses = 0, expected = 0;
    const int last = argc > 1 ? atoi(argv[1]) : 1;
    with_times = argc > 2 && strcmp(argv[2], "time") == 0;
    check(MPI_Init(&argc, &argv), "MPI_Init");
    check(MPI_Comm_get_parent(&parent), "MPI_Comm_get_parent");
    if (parent == MPI_COMM_NULL) {
        check(MPI_Comm_dup(MPI_COMM_WORLD, &comm), "MPI_Comm_dup");
        check(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
        MPI_Comm_rank(comm, &rank);
        MPI_Comm_size(comm, &size);
        if (rank == 0) printf("%d processes work after 0 losses\n", size), fflush(stdout);
    } else {
        comm = MPI_COMM_NULL;
        check(MPI_Comm_set_errhandler(parent, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
        replace(&comm, NULL, MPI_ARGV_NULL, &losses);
        report("joined after loss", losses);
    }
    expected = size;
    while (losses < last) {
        if (MPI_Barrier(comm) == MPI_SUCCESS) continue;
        ++losses;
        report("noticed loss", losses);
        MPIX_Comm_revoke(comm);
        replace(&comm, argv[0], argv + 1, &losses);
        report("works after loss", losses);
        if (rank == 0) printf("%d processes work after %d losses\n", size, losses), fflush(stdout);
    }
    if (!is_whole(comm, expected)) fprintf(stderr, "FAIL: rank %d of %d, and %d were expected\n", rank, size, expected);
    check(MPI_Comm_free(&comm), "MPI_Comm_free");
    if (rank == 0) printf("done\n");
    return MPI_Finalize();
}
