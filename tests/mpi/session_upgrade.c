// A library opens an MPI session in a second thread of a program at MPI_THREAD_FUNNELED. Meanwhile the main thread is inside MPI, asleep in
// a receive or passing message after message: both threads must make progress.
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "check.h"

#define ROUNDS 300

static atomic_int half, done;

static void* library(void* unused) {
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm;
    int size, one = 1, sum;
    usleep(200000);
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session));
    OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &group));
    OK(MPI_Comm_create_from_group(group, "library", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm));
    OK(MPI_Comm_size(comm, &size));
    for (int i = 0; i < ROUNDS; i++) {
        OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm));
        EXPECT_INT(sum, size);
        if (i == ROUNDS / 2) half = 1;
        usleep(2000);
    }
    OK(MPI_Group_free(&group));
    OK(MPI_Comm_free(&comm));
    OK(MPI_Session_finalize(&session));
    done = 1;
    return unused;
}

int main(int argc, char** argv) {
    int level, rank, size, token = 0;
    pthread_t thread;
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    CHECK(!pthread_create(&thread, NULL, library, NULL));
    if (rank == 0) {  // asleep
        OK(MPI_Recv(&token, 1, MPI_INT, size - 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        EXPECT_INT(token, 1);
    } else {  // busy
        for (long i = 0; !half; i++) {
            const int value = (int)i;
            OK(MPI_Sendrecv(&value, 1, MPI_INT, rank, 0, &token, 1, MPI_INT, rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            EXPECT_INT(token, value);
        }
        token = 1;
        if (rank == size - 1) OK(MPI_Send(&token, 1, MPI_INT, 0, 1, MPI_COMM_WORLD));
    }
    // The library's thread works while rank 0 is outside MPI and the other ranks are inside.
    while (rank != 0 && !done) {
        OK(MPI_Sendrecv(&rank, 1, MPI_INT, rank, 0, &token, 1, MPI_INT, rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    }
    pthread_join(thread, NULL);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Finalize());
    return 0;
}
