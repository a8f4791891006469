// Cases where other libraries accept more than the standard requires, and the state after an error. The cases: reductions of characters,
// receives from MPI_PROC_NULL without a datatype, keyvals freed through a second copy of their handle, null handles after errors, balanced
// grids, counts that the program overwrites after a non-blocking call.
#include "check.h"

#define REFUSED(call)                                               \
    do {                                                            \
        if ((call) == MPI_SUCCESS) CHECK(0, "%s succeeded", #call); \
    } while (0)

static void characters(void) {
    signed char mine[3] = {1, -2, 3}, sum[3], product[3];
    int size;
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    OK(MPI_Allreduce(mine, sum, 3, MPI_CHAR, MPI_SUM, MPI_COMM_WORLD));
    for (int i = 0; i < 3; i++) EXPECT_INT(sum[i], (signed char)(mine[i] * size));
    OK(MPI_Allreduce(mine, product, 3, MPI_CHAR, MPI_MIN, MPI_COMM_WORLD));
    for (int i = 0; i < 3; i++) EXPECT_INT(product[i], mine[i]);
    _Bool yes = 1, all = 0;
    OK(MPI_Allreduce(&yes, &all, 1, MPI_C_BOOL, MPI_LAND, MPI_COMM_WORLD));
    EXPECT_INT(all, 1);
}

static void receives_from_nobody(void) {
    MPI_Status status;
    MPI_Request request;
    OK(MPI_Recv(NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 3, MPI_COMM_WORLD, &status));
    EXPECT_INT(status.MPI_SOURCE, MPI_PROC_NULL);
    OK(MPI_Irecv(NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 3, MPI_COMM_WORLD, &request));
    OK(MPI_Wait(&request, &status));
    EXPECT_INT(status.MPI_SOURCE, MPI_PROC_NULL);
    OK(MPI_Recv_init(NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 3, MPI_COMM_WORLD, &request));
    OK(MPI_Start(&request));
    OK(MPI_Wait(&request, &status));
    EXPECT_INT(status.MPI_SOURCE, MPI_PROC_NULL);
    OK(MPI_Request_free(&request));
    OK(MPI_Sendrecv(NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 3, NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 3, MPI_COMM_WORLD,
                    &status));
    EXPECT_INT(status.MPI_SOURCE, MPI_PROC_NULL);
    OK(MPI_Sendrecv_replace(NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 3, MPI_PROC_NULL, 3, MPI_COMM_WORLD, &status));
    EXPECT_INT(status.MPI_SOURCE, MPI_PROC_NULL);
}

static int deletions;
static int on_delete(MPI_Comm comm, int keyval, void* value, void* extra) {
    (void)comm, (void)keyval, (void)value, (void)extra;
    deletions++;
    return MPI_SUCCESS;
}

static void keys(void) {
    MPI_Comm first, second;
    int key, copy, again;
    OK(MPI_Comm_dup(MPI_COMM_SELF, &first));
    OK(MPI_Comm_dup(MPI_COMM_SELF, &second));
    OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_delete, &key, NULL));
    copy = again = key;
    OK(MPI_Comm_set_attr(first, key, NULL));
    OK(MPI_Comm_set_attr(second, key, NULL));
    OK(MPI_Comm_free_keyval(&key));
    OK(MPI_Comm_free_keyval(&copy));
    EXPECT_INT(copy, MPI_KEYVAL_INVALID);
    OK(MPI_Comm_free(&first));
    EXPECT_INT(deletions, 1);
    OK(MPI_Comm_free_keyval(&again));
    OK(MPI_Comm_free(&second));
    EXPECT_INT(deletions, 2);
}

static void nulls_after_errors(void) {
    int size, dims[2], periods[2] = {0, 0};
    MPI_Comm comm = MPI_COMM_WORLD;
    MPI_Request request = (MPI_Request)(intptr_t)-1, initial = request;
    MPI_Group group = MPI_GROUP_EMPTY;
    MPI_Datatype type = MPI_INT;
    MPI_Op op = MPI_SUM;
    MPI_Info info = MPI_INFO_ENV;
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    dims[0] = size + 1, dims[1] = 7;
    REFUSED(MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &comm));
    CHECK(comm == MPI_COMM_NULL, "a Cartesian communicator that was not made");
    comm = MPI_COMM_WORLD;
    REFUSED(MPI_Comm_dup(MPI_COMM_NULL, &comm));
    CHECK(comm == MPI_COMM_NULL, "a duplicate of nothing");
    REFUSED(MPI_Isend(&size, 1, MPI_INT, size + 5, 0, MPI_COMM_WORLD, &request));
    CHECK(request == MPI_REQUEST_NULL, "a send that was not started");
    request = initial;
    REFUSED(MPI_Irecv(&size, -1, MPI_INT, 0, 0, MPI_COMM_WORLD, &request));
    CHECK(request == MPI_REQUEST_NULL, "a receive that was not started");
    request = initial;
    REFUSED(MPI_Ibcast(&size, 1, MPI_INT, size + 5, MPI_COMM_WORLD, &request));
    CHECK(request == MPI_REQUEST_NULL, "a broadcast that was not started");
    REFUSED(MPI_Group_incl(MPI_GROUP_NULL, 0, NULL, &group));
    CHECK(group == MPI_GROUP_NULL, "a group that was not made");
    REFUSED(MPI_Type_contiguous(-1, MPI_INT, &type));
    CHECK(type == MPI_DATATYPE_NULL, "a datatype that was not made");
    REFUSED(MPI_Op_create(NULL, 0, &op));
    CHECK(op == MPI_OP_NULL, "an operation that was not made");
    REFUSED(MPI_Info_dup(MPI_INFO_NULL, &info));
    CHECK(info == MPI_INFO_NULL, "an info object that was not made");
    // MPI_Comm_free must leave the handle unchanged if it fails.
    comm = MPI_COMM_NULL;
    REFUSED(MPI_Comm_free(&comm));
    MPI_Comm world = MPI_COMM_WORLD;
    REFUSED(MPI_Comm_free(&world));
    CHECK(world == MPI_COMM_WORLD, "a communicator that can't be freed");
}

static void even_grids(void) {
    int dims[3] = {0, 0, 0};
    OK(MPI_Dims_create(5040, 3, dims));
    CHECK(dims[0] == 21 && dims[1] == 16 && dims[2] == 15, "5040 is %d x %d x %d", dims[0], dims[1], dims[2]);
}

/// Programs may overwrite counts and displacements as soon as a non-blocking call returns, even the first call on a communicator.
static void counts_of_a_while(void) {
    enum { kMost = 64 };
    int rank, size, counts[kMost], places[kMost], got[kMost];
    MPI_Comm comm;
    MPI_Request request;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_rank(comm, &rank));
    OK(MPI_Comm_size(comm, &size));
    CHECK(size <= kMost, "%d ranks are too many", size);
    for (int round = 0; round < 3; round++) {
        const int mine = 10 * round + rank;
        for (int i = 0; i < size; i++) counts[i] = 1, places[i] = size - 1 - i;
        OK(MPI_Iallgatherv(&mine, 1, MPI_INT, got, counts, places, MPI_INT, comm, &request));
        for (int i = 0; i < size; i++) counts[i] = 1 << 20, places[i] = 1 << 28;
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        for (int i = 0; i < size; i++) EXPECT_INT(got[size - 1 - i], 10 * round + i);
    }
    OK(MPI_Comm_free(&comm));
}

int main(int argc, char** argv) {
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    characters();
    receives_from_nobody();
    keys();
    nulls_after_errors();
    even_grids();
    counts_of_a_while();
    OK(MPI_Finalize());
    return 0;
}
