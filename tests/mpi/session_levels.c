// Two threads use one MPI session of a low thread level each, at the same time (MPI 5.0 section 11.6.2): both must work. With TEST_WORLD in
// the environment, MPI_Init takes the place of one session.
#include <pthread.h>

#include "check.h"

static MPI_Comm comms[2];
static int messages;

/// Returns a number of messages that takes similar time within a host and across a network.
static int messages_for(MPI_Comm comm) {
    MPI_Comm host;
    int size, here;
    OK(MPI_Comm_size(comm, &size));
    OK(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host));
    OK(MPI_Comm_size(host, &here));
    OK(MPI_Comm_free(&host));
    OK(MPI_Allreduce(MPI_IN_PLACE, &here, 1, MPI_INT, MPI_MIN, comm));
    return here == size ? 100000 : 2000;
}

static void* exchange(void* number) {
    MPI_Comm comm = comms[(intptr_t)number];
    int rank, size, value;
    OK(MPI_Comm_rank(comm, &rank));
    OK(MPI_Comm_size(comm, &size));
    for (int i = 0; i < messages; i++) {
        value = i;
        OK(MPI_Sendrecv_replace(&value, 1, MPI_INT, (rank + 1) % size, 0, (rank + size - 1) % size, 0, comm,
                                MPI_STATUS_IGNORE));
        EXPECT_INT(value, i);
    }
    return NULL;
}

static void open_session(MPI_Session* session, const char* level, MPI_Comm* comm) {
    MPI_Info info;
    MPI_Group group;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "thread_level", level));
    OK(MPI_Session_init(info, MPI_ERRORS_ARE_FATAL, session));
    OK(MPI_Info_free(&info));
    OK(MPI_Group_from_session_pset(*session, "mpi://WORLD", &group));
    OK(MPI_Comm_create_from_group(group, level, MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, comm));
    OK(MPI_Group_free(&group));
}

int main(int argc, char** argv) {
    const int world = getenv("TEST_WORLD") != NULL;
    int level;
    pthread_t thread;
    MPI_Session sessions[2];
    if (world) {
        OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level));
        comms[0] = MPI_COMM_WORLD;
    } else {
        open_session(&sessions[0], "MPI_THREAD_SERIALIZED", &comms[0]);
    }
    open_session(&sessions[1], "MPI_THREAD_FUNNELED", &comms[1]);
    messages = messages_for(comms[0]);
    CHECK(!pthread_create(&thread, NULL, exchange, (void*)1));
    exchange((void*)0);
    pthread_join(thread, NULL);
    OK(MPI_Comm_free(&comms[1]));
    OK(MPI_Session_finalize(&sessions[1]));
    if (world) {
        OK(MPI_Finalize());
    } else {
        OK(MPI_Comm_free(&comms[0]));
        OK(MPI_Session_finalize(&sessions[0]));
    }
    return 0;
}
