// A rank dies, and while the survivors replace it, another survivor and some of the substitutes die at random moments. The survivors repeat
// the call until all ranks are there. Usage: replace_kills SEED
#include <mpi-ext.h>
#include <signal.h>
#include <sys/time.h>

#include "dynamic.h"

enum { kDeadlyTries = 3 };  // tries in which substitutes may die

static uint64_t state;

static void set_timer(unsigned us) {
    const struct itimerval when = {.it_value = {0, us}};
    struct sigaction action = {.sa_handler = SIG_DFL};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &when, NULL);
}

static unsigned within(unsigned us) { return 1 + (unsigned)(next_random(&state) % us); }

/// Returns whether all members of a new communicator still live; alike on all that do.
static int all_live(MPI_Comm comm, int size) {
    int one = 1, sum = 0;
    int good = MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS && sum == size;
    const int code = MPIX_Comm_agree(comm, &good);
    CHECK(code == MPI_SUCCESS || class_of(code) == MPIX_ERR_PROC_FAILED, "agree: class %d", class_of(code));
    return good && code == MPI_SUCCESS;
}

/// Replaces the dead until the communicator is whole.
static MPI_Comm make_whole(MPI_Comm comm, int size, int tries) {
    char seed[24], number[16], text[16];
    char* arguments[] = {seed, number, text, NULL};
    int rank, now;
    OK(MPI_Comm_rank(comm, &rank));
    for (;;) {
        MPI_Comm made;
        snprintf(seed, sizeof seed, "%llu", (unsigned long long)test_seed);
        snprintf(number, sizeof number, "%d", ++tries);
        snprintf(text, sizeof text, "%d", size);
        const int code = MPIX_Comm_replace(comm, own_path(), arguments, MPI_INFO_NULL, &made);
        const int class = class_of(code);
        if (class != MPI_SUCCESS) {
            CHECK(class == MPIX_ERR_PROC_FAILED || class == MPI_ERR_SPAWN, "replace: class %d", class);
            CHECK(made == MPI_COMM_NULL, "a failed call has made a communicator");
            continue;
        }
        set_timer(0);  // a survivor that lives until here goes on living
        OK(MPI_Comm_free(&comm));
        comm = made;
        OK(MPI_Comm_rank(comm, &now));
        EXPECT_INT(now, rank);
        if (all_live(comm, size)) return comm;
    }
}

static MPI_Comm join(int size, int tries) {
    MPI_Comm comm, parent;
    OK(MPI_Comm_get_parent(&parent));
    OK(MPI_Comm_set_errhandler(parent, MPI_ERRORS_RETURN));
    const int class = class_of(MPIX_Comm_replace(MPI_COMM_NULL, NULL, NULL, MPI_INFO_NULL, &comm));
    set_timer(0);
    if (class != MPI_SUCCESS) {
        EXPECT_INT(class, MPIX_ERR_PROC_FAILED);
        OK(MPI_Finalize());
        exit(0);
    }
    return all_live(comm, size) ? comm : make_whole(comm, size, tries);
}

int main(int argc, char** argv) {
    MPI_Comm comm;
    int rank, size;
    CHECK(argc > 1, "usage: mpiexec --enable-recovery -n N replace_kills SEED");
    test_seed = strtoull(argv[1], NULL, 10);
    if (argc > 2) {
        state = test_seed * 1000003 + (uint64_t)getpid();
        const int tries = atoi(argv[2]);
        size = atoi(argv[3]);
        if (tries <= kDeadlyTries && next_random(&state) % 2) set_timer(within(20000));
        OK(MPI_Init(&argc, &argv));
        comm = join(size, tries);
    } else {
        OK(MPI_Init(&argc, &argv));
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
        OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
        OK(MPI_Comm_rank(comm, &rank));
        OK(MPI_Comm_size(comm, &size));
        state = test_seed;
        const int first = (int)(next_random(&state) % (uint64_t)size);
        const int second = (first + 1 + (int)(next_random(&state) % (uint64_t)(size - 1))) % size;
        for (int r = 0; rank == first && r < size - 1; ++r)
            OK(MPI_Recv(NULL, 0, MPI_BYTE, MPI_ANY_SOURCE, 7, comm, MPI_STATUS_IGNORE));
        if (rank == first) raise(SIGKILL);
        OK(MPI_Send(NULL, 0, MPI_BYTE, first, 7, comm));
        EXPECT_INT(class_of(MPI_Recv(NULL, 0, MPI_BYTE, first, 8, comm, MPI_STATUS_IGNORE)), MPIX_ERR_PROC_FAILED);
        if (rank == second) set_timer(within(test_seed % 2 ? 2000 : 20000));
        comm = make_whole(comm, size, 0);
    }
    OK(MPI_Comm_rank(comm, &rank));
    if (rank == 0) puts("all ranks are there again");
    OK(MPI_Comm_free(&comm));
    OK(MPI_Finalize());
    return 0;
}
