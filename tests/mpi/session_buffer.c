// A buffer attached to an MPI session serves buffered sends on every communicator derived from its groups: created, duplicated, split,
// merged, and inter-communicators. After it is detached, the process's buffer is used.
#include "check.h"

static int on_delete(MPI_Comm comm, int keyval, void* value, void* extra) {
    (void)comm, (void)keyval, (void)value, (void)extra;
    return MPI_SUCCESS;
}

static void exchange(MPI_Comm comm) {
    int rank, size, inter, in = -1, value;
    OK(MPI_Comm_rank(comm, &rank));
    OK(MPI_Comm_test_inter(comm, &inter));
    if (inter)
        OK(MPI_Comm_remote_size(comm, &size));
    else
        OK(MPI_Comm_size(comm, &size));
    const int to = inter ? 0 : (rank + 1) % size, from = inter ? 0 : (rank + size - 1) % size;
    if (inter && rank != 0) return;
    value = 100 + rank;
    OK(MPI_Bsend(&value, 1, MPI_INT, to, 5, comm));
    OK(MPI_Recv(&in, 1, MPI_INT, from, 5, comm, MPI_STATUS_IGNORE));
    EXPECT_INT(in, 100 + from);
}

// With no buffer attached to the session, sends must use the process's buffer.
static void of_the_process(MPI_Session session) {
    static char buffer[2000];
    MPI_Group group;
    MPI_Comm comm;
    int size;
    void* back;
    OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &group));
    OK(MPI_Comm_create_from_group(group, "process", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm));
    OK(MPI_Buffer_attach(buffer, sizeof buffer));
    exchange(comm);
    OK(MPI_Buffer_detach(&back, &size));
    CHECK(back == buffer, "the detach returned another buffer");
    OK(MPI_Comm_free(&comm));
    OK(MPI_Group_free(&group));
}

int main(void) {
    enum { kBytes = 64 * 1024 };
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm, dup, half, inter, merged;
    int rank, size, keyval;
    void* back;
    static char buffer[kBytes];
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session));
    OK(MPI_Session_attach_buffer(session, buffer, kBytes));
    OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &group));
    OK(MPI_Comm_create_from_group(group, "test", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm));
    OK(MPI_Comm_rank(comm, &rank));
    OK(MPI_Comm_size(comm, &size));
    exchange(comm);
    OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_delete, &keyval, NULL));
    OK(MPI_Comm_set_attr(comm, keyval, NULL));
    OK(MPI_Comm_dup(comm, &dup));
    exchange(dup);
    OK(MPI_Comm_split(comm, rank % 2, 0, &half));
    exchange(half);
    if (size > 1) {
        OK(MPI_Intercomm_create(half, 0, comm, 1 - rank % 2, 9, &inter));
        exchange(inter);
        OK(MPI_Intercomm_merge(inter, 0, &merged));
        exchange(merged);
        OK(MPI_Comm_free(&merged));
        OK(MPI_Comm_free(&inter));
    }
    OK(MPI_Comm_free(&half));
    OK(MPI_Comm_free(&dup));
    OK(MPI_Comm_free(&comm));
    OK(MPI_Comm_free_keyval(&keyval));
    OK(MPI_Group_free(&group));
    OK(MPI_Session_detach_buffer(session, &back, &size));
    CHECK(back == buffer, "the detach returned another buffer");
    of_the_process(session);
    OK(MPI_Session_finalize(&session));
    return 0;
}
