// A message from a job that this process has not communicated with needs a descriptor for a moment. Without a free descriptor the message
// must wait in the inbox and none may be lost. It and messages for other jobs continue once a descriptor is free. Spawn, connect and accept
// without a descriptor must return an error, and not a communicator that receives nothing.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../mpi/check.h"

static int taken[4096], count;

static void take_all_descriptors(void) {
    struct rlimit few = {128, 128};
    setrlimit(RLIMIT_NOFILE, &few);
    while ((taken[count] = open("/dev/null", O_RDONLY)) >= 0) ++count;
}

static void give_them_back(void) {
    while (count > 0) close(taken[--count]);
}

static MPI_Comm spawn(char* program, MPI_Comm over) {
    MPI_Comm children;
    OK(MPI_Comm_spawn(program, MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, over, &children, MPI_ERRCODES_IGNORE));
    return children;
}

static void child(MPI_Comm parent) {
    MPI_Comm talk, both;
    int value = 42, go;
    OK(MPI_Intercomm_merge(parent, 1, &talk));  // the remote group is rank 0 of the parents alone
    OK(MPI_Intercomm_create(MPI_COMM_WORLD, 0, talk, 0, 7, &both));
    OK(MPI_Recv(&go, 1, MPI_INT, 0, 0, talk, MPI_STATUS_IGNORE));
    for (value = 42; value < 142; ++value) OK(MPI_Send(&value, 1, MPI_INT, 1, 0, both));
    OK(MPI_Send(&value, 1, MPI_INT, 0, 1, talk));
    OK(MPI_Comm_disconnect(&both));
    OK(MPI_Comm_disconnect(&talk));
    OK(MPI_Comm_disconnect(&parent));
    OK(MPI_Finalize());
}

static void messages_wait(char* program, int rank) {
    MPI_Comm children = MPI_COMM_NULL, talk = MPI_COMM_NULL, both;
    int value, flag, go = 1;
    if (rank == 0) {
        children = spawn(program, MPI_COMM_SELF);
        OK(MPI_Intercomm_merge(children, 0, &talk));
    } else {
        take_all_descriptors();
    }
    OK(MPI_Intercomm_create(MPI_COMM_WORLD, 0, talk, 1, 7, &both));
    if (rank == 0) {
        OK(MPI_Send(&go, 1, MPI_INT, 1, 0, talk));
        OK(MPI_Recv(&value, 1, MPI_INT, 1, 1, talk, MPI_STATUS_IGNORE));  // received when the child has sent its messages
    } else {
        double end = MPI_Wtime() + 0.5;  // long enough for the first message to reach the inbox
        while (MPI_Wtime() < end) OK(MPI_Iprobe(0, 0, both, &flag, MPI_STATUS_IGNORE));
        give_them_back();
        for (int i = 42; i < 142; ++i) {
            OK(MPI_Recv(&value, 1, MPI_INT, 0, 0, both, MPI_STATUS_IGNORE));
            EXPECT_INT(value, i);
        }
    }
    OK(MPI_Comm_disconnect(&both));
    if (rank == 0) {
        OK(MPI_Comm_disconnect(&talk));
        OK(MPI_Comm_disconnect(&children));
    }
}

// Rank 1 cannot map the children: all ranks must return an error, and none gets a communicator.
static void spawning_fails(char* program, int rank) {
    MPI_Comm children = MPI_COMM_NULL;
    int class = MPI_SUCCESS;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    if (rank == 1) take_all_descriptors();
    char* arguments[] = {"idle", NULL};
    int error = MPI_Comm_spawn(program, arguments, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
    if (rank == 1) give_them_back();
    EXPECT_INT(children == MPI_COMM_NULL, 1);
    OK(MPI_Error_class(error, &class));
    EXPECT_INT(class, MPI_ERR_OTHER);  // the class of a temporary error: no process has failed
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

int main(int argc, char** argv) {
    MPI_Comm parent;
    int rank;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_get_parent(&parent));
    if (parent != MPI_COMM_NULL) {
        if (argc == 1)
            child(parent);
        else
            OK(MPI_Finalize());
        return 0;
    }
    messages_wait(argv[0], rank);
    spawning_fails(argv[0], rank);
    OK(MPI_Finalize());
    return 0;
}
