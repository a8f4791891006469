// Callbacks of the program lock a mutex that other threads hold while they call MPI: there must be no deadlock. Python works like this: its
// MPI calls that do not wait are made with the interpreter's lock held.
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "check.h"

#define ROUNDS 500

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_int stop;
static int deleted, copied, queried, freed, cancelled, raised;

static void locked(int* counter) {
    pthread_mutex_lock(&mutex);
    if (counter) ++*counter;
    pthread_mutex_unlock(&mutex);
}

static void add(void* in, void* inout, int* n, MPI_Datatype* type) {
    (void)type;
    locked(NULL);
    for (int i = 0; i < *n; i++) ((int*)inout)[i] += ((int*)in)[i];
}
static int on_copy(MPI_Comm comm, int keyval, void* extra, void* in, void* out, int* flag) {
    (void)comm, (void)keyval, (void)extra;
    locked(&copied);
    *(void**)out = in;
    *flag = 1;
    return MPI_SUCCESS;
}
static int on_delete(MPI_Comm comm, int keyval, void* value, void* extra) {
    (void)comm, (void)keyval, (void)value, (void)extra;
    locked(&deleted);
    return MPI_SUCCESS;
}
static void on_error(MPI_Comm* comm, int* code, ...) {
    (void)comm, (void)code;
    locked(&raised);
}
static int on_query(void* extra, MPI_Status* status) {
    (void)extra;
    locked(&queried);
    MPI_Status_set_elements(status, MPI_BYTE, 0);
    MPI_Status_set_cancelled(status, 0);
    return MPI_SUCCESS;
}
static int on_free(void* extra) {
    (void)extra;
    locked(&freed);
    return MPI_SUCCESS;
}
static int on_cancel(void* extra, int complete) {
    (void)extra, (void)complete;
    locked(&cancelled);
    return MPI_SUCCESS;
}

// Calls that neither wait nor poll, all with the mutex held. (A call that polls may run another thread's reduction.)
static void* other(void* unused) {
    while (!stop) {
        int rank, size, flag, *tag_ub;
        char name[MPI_MAX_OBJECT_NAME];
        MPI_Info info;
        MPI_Group group;
        MPI_Datatype type;
        pthread_mutex_lock(&mutex);
        OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
        OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
        OK(MPI_Comm_test_inter(MPI_COMM_WORLD, &flag));
        OK(MPI_Comm_get_name(MPI_COMM_WORLD, name, &flag));
        OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &tag_ub, &flag));
        OK(MPI_Comm_group(MPI_COMM_WORLD, &group));
        OK(MPI_Group_free(&group));
        OK(MPI_Info_create(&info));
        OK(MPI_Info_free(&info));
        OK(MPI_Type_contiguous(3, MPI_INT, &type));
        OK(MPI_Type_free(&type));
        pthread_mutex_unlock(&mutex);
        usleep(50);  // lets the other threads lock the mutex: mutexes are not fair
    }
    return unused;
}

static void objects(MPI_Comm base, int keyval) {
    MPI_Comm copy;
    MPI_Request request;
    OK(MPI_Comm_set_attr(base, keyval, base == MPI_COMM_WORLD ? NULL : &copy));
    OK(MPI_Comm_dup(base, &copy));
    OK(MPI_Comm_free(&copy));
    OK(MPI_Comm_delete_attr(base, keyval));
    OK(MPI_Grequest_start(on_query, on_free, on_cancel, NULL, &request));
    OK(MPI_Cancel(&request));
    OK(MPI_Grequest_complete(request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(MPI_Send(NULL, 0, MPI_INT, -77, 0, base) != MPI_SUCCESS);
}

int main(int argc, char** argv) {
    int level, rank, size, keyval;
    MPI_Op op;
    MPI_Comm comm;
    MPI_Errhandler handler;
    pthread_t threads[2];
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    OK(MPI_Op_create(add, 1, &op));
    OK(MPI_Comm_create_keyval(on_copy, on_delete, &keyval, NULL));
    OK(MPI_Comm_create_errhandler(on_error, &handler));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_set_errhandler(comm, handler));
    for (int i = 0; i < 2; i++) CHECK(!pthread_create(&threads[i], NULL, other, NULL));
    int values[3000], sums[3000];
    for (int i = 0; i < 3000; i++) values[i] = rank + i;
    for (int i = 0; i < ROUNDS; i++) {
        const int n = i % 100 ? 1 : 3000;  // a different length selects another algorithm
        OK(MPI_Allreduce(values, sums, n, MPI_INT, op, comm));
        for (int k = 0; k < n; k++) EXPECT_INT(sums[k], size * (size - 1) / 2 + k * size);
        if (i % 10 == 0) {
            MPI_Request request;
            OK(MPI_Iallreduce(values, sums, 1, MPI_INT, op, comm, &request));
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
            EXPECT_INT(sums[0], size * (size - 1) / 2);
            objects(comm, keyval);
        }
    }
    stop = 1;
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    const int times = ROUNDS / 10;
    EXPECT_INT(copied, times);
    EXPECT_INT(deleted, 2 * times);
    EXPECT_INT(queried, times);
    EXPECT_INT(freed, times);
    EXPECT_INT(cancelled, times);
    EXPECT_INT(raised, times);
    OK(MPI_Op_free(&op));
    OK(MPI_Comm_free_keyval(&keyval));
    OK(MPI_Errhandler_free(&handler));
    OK(MPI_Comm_free(&comm));
    OK(MPI_Finalize());
    return 0;
}
