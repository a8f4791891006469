// Bad input must return the standard's error class and leave the library usable: wrong ranks, counts, tags and roots, null and freed
// handles, uncommitted types, wrong buffers and operations.
#include "check.h"

static int rank, size;

static void point_to_point(void) {
    int value = 0, flag;
    MPI_Request request;
    MPI_Status status;
    MPI_Message message;
    MPI_Comm world = MPI_COMM_WORLD;
    EXPECT_ERROR(MPI_Send(&value, 1, MPI_INT, size, 0, world), MPI_ERR_RANK);
    EXPECT_ERROR(MPI_Send(&value, 1, MPI_INT, -77, 0, world), MPI_ERR_RANK);
    EXPECT_ERROR(MPI_Send(&value, 1, MPI_INT, MPI_ANY_SOURCE, 0, world), MPI_ERR_RANK);
    EXPECT_ERROR(MPI_Recv(&value, 1, MPI_INT, size, 0, world, &status), MPI_ERR_RANK);
    EXPECT_ERROR(MPI_Irecv(&value, 1, MPI_INT, -77, 0, world, &request), MPI_ERR_RANK);
    EXPECT_ERROR(MPI_Send(&value, -1, MPI_INT, rank, 0, world), MPI_ERR_COUNT);
    EXPECT_ERROR(MPI_Irecv(&value, -1, MPI_INT, rank, 0, world, &request), MPI_ERR_COUNT);
    EXPECT_ERROR(MPI_Send(&value, 1, MPI_INT, rank, -5, world), MPI_ERR_TAG);
    EXPECT_ERROR(MPI_Send(&value, 1, MPI_INT, rank, MPI_ANY_TAG, world), MPI_ERR_TAG);
    EXPECT_ERROR(MPI_Recv(&value, 1, MPI_INT, rank, -50, world, &status), MPI_ERR_TAG);
    EXPECT_ERROR(MPI_Isend(&value, 1, MPI_DATATYPE_NULL, rank, 0, world, &request), MPI_ERR_TYPE);
    EXPECT_ERROR(MPI_Recv(&value, 1, MPI_DATATYPE_NULL, rank, 0, world, &status), MPI_ERR_TYPE);
    EXPECT_ERROR(MPI_Send(&value, 1, MPI_INT, 0, 0, MPI_COMM_NULL), MPI_ERR_COMM);
    EXPECT_ERROR(MPI_Probe(size, 0, world, &status), MPI_ERR_RANK);
    EXPECT_ERROR(MPI_Iprobe(0, -50, world, &flag, &status), MPI_ERR_TAG);
    EXPECT_ERROR(MPI_Mprobe(size, 0, world, &message, &status), MPI_ERR_RANK);
    int* tag_upper_bound;
    OK(MPI_Comm_get_attr(world, MPI_TAG_UB, &tag_upper_bound, &flag));
    if (*tag_upper_bound < 0x7fffffff)
        EXPECT_ERROR(MPI_Send(&value, 1, MPI_INT, rank, *tag_upper_bound + 1, world), MPI_ERR_TAG);
    EXPECT_ERROR(MPI_Sendrecv(&value, 1, MPI_INT, size, 0, &value, 1, MPI_INT, 0, 0, world, &status), MPI_ERR_RANK);
    EXPECT_ERROR(MPI_Send_init(&value, 1, MPI_INT, size, 0, world, &request), MPI_ERR_RANK);
    EXPECT_ERROR(MPI_Send(NULL, 4, MPI_INT, rank, 0, world), MPI_ERR_BUFFER);
}

static void requests(void) {
    MPI_Request null = MPI_REQUEST_NULL;
    int flag, value;
    OK(MPI_Wait(&null, MPI_STATUS_IGNORE));
    OK(MPI_Test(&null, &flag, MPI_STATUS_IGNORE));
    EXPECT_ERROR(MPI_Request_free(&null), MPI_ERR_REQUEST);
    EXPECT_ERROR(MPI_Cancel(&null), MPI_ERR_REQUEST);
    EXPECT_ERROR(MPI_Start(&null), MPI_ERR_REQUEST);
    MPI_Request request;
    OK(MPI_Irecv(&value, 1, MPI_INT, rank, 3, MPI_COMM_WORLD, &request));
    EXPECT_ERROR(MPI_Start(&request), MPI_ERR_REQUEST);  // the request is not persistent
    OK(MPI_Send(&rank, 1, MPI_INT, rank, 3, MPI_COMM_WORLD));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Recv_init(&value, 1, MPI_INT, rank, 4, MPI_COMM_WORLD, &request));
    OK(MPI_Request_free(&request));
    CHECK(MPI_Waitall(-1, NULL, MPI_STATUSES_IGNORE) != MPI_SUCCESS, "Waitall of -1 requests");
}

static void types(void) {
    MPI_Datatype type, bad;
    int value = 0;
    OK(MPI_Type_contiguous(2, MPI_INT, &type));
    EXPECT_ERROR(MPI_Send(&value, 1, type, rank, 0, MPI_COMM_WORLD), MPI_ERR_TYPE);  // the datatype is not committed
    OK(MPI_Type_free(&type));
    CHECK(type == MPI_DATATYPE_NULL);
    EXPECT_ERROR(MPI_Type_free(&type), MPI_ERR_TYPE);
    EXPECT_ERROR(MPI_Type_commit(&type), MPI_ERR_TYPE);
    bad = MPI_INT;
    EXPECT_ERROR(MPI_Type_free(&bad), MPI_ERR_TYPE);
    EXPECT_ERROR(MPI_Type_contiguous(-1, MPI_INT, &type), MPI_ERR_COUNT);
    EXPECT_ERROR(MPI_Type_vector(-1, 1, 1, MPI_INT, &type), MPI_ERR_COUNT);
    EXPECT_ERROR(MPI_Type_contiguous(1, MPI_DATATYPE_NULL, &type), MPI_ERR_TYPE);
    EXPECT_ERROR(MPI_Type_size(MPI_DATATYPE_NULL, &value), MPI_ERR_TYPE);
#if MPI_AT_LEAST(4, 0)
    // Must fail: the type's count does not fit in the caller's int.
    int numbers[4];
    MPI_Aint addresses[1];
    OK(MPI_Type_contiguous_c((MPI_Count)1 << 40, MPI_BYTE, &type));
    EXPECT_ERROR(MPI_Type_get_envelope(type, &numbers[0], &numbers[1], &numbers[2], &numbers[3]), MPI_ERR_TYPE);
    EXPECT_ERROR(MPI_Type_get_contents(type, 1, 0, 1, numbers, addresses, &bad), MPI_ERR_TYPE);
    OK(MPI_Type_free(&type));
#endif
}

static void collectives(void) {
    int value = 0, other = 0;
    MPI_Op null_op = MPI_OP_NULL;
    EXPECT_ERROR(MPI_Bcast(&value, 1, MPI_INT, size, MPI_COMM_WORLD), MPI_ERR_ROOT);
    EXPECT_ERROR(MPI_Bcast(&value, 1, MPI_INT, -3, MPI_COMM_WORLD), MPI_ERR_ROOT);
    EXPECT_ERROR(MPI_Bcast(&value, -1, MPI_INT, 0, MPI_COMM_WORLD), MPI_ERR_COUNT);
    EXPECT_ERROR(MPI_Bcast(&value, 1, MPI_DATATYPE_NULL, 0, MPI_COMM_WORLD), MPI_ERR_TYPE);
    EXPECT_ERROR(MPI_Bcast(&value, 1, MPI_INT, 0, MPI_COMM_NULL), MPI_ERR_COMM);
    EXPECT_ERROR(MPI_Reduce(&value, &other, 1, MPI_INT, null_op, 0, MPI_COMM_WORLD), MPI_ERR_OP);
    EXPECT_ERROR(MPI_Allreduce(&value, &other, 1, MPI_INT, null_op, MPI_COMM_WORLD), MPI_ERR_OP);
    EXPECT_ERROR(MPI_Allreduce(&value, &other, -1, MPI_INT, MPI_SUM, MPI_COMM_WORLD), MPI_ERR_COUNT);
    EXPECT_ERROR(MPI_Allreduce(&value, &other, 1, MPI_FLOAT, MPI_BAND, MPI_COMM_WORLD), MPI_ERR_OP);
    EXPECT_ERROR(MPI_Allreduce(&value, &value, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD), MPI_ERR_BUFFER);
    EXPECT_ERROR(MPI_Barrier(MPI_COMM_NULL), MPI_ERR_COMM);
    EXPECT_ERROR(MPI_Gather(&value, 1, MPI_INT, &other, 1, MPI_INT, size, MPI_COMM_WORLD), MPI_ERR_ROOT);
    EXPECT_ERROR(MPI_Op_free(&null_op), MPI_ERR_OP);
    MPI_Op sum = MPI_SUM;
    EXPECT_ERROR(MPI_Op_free(&sum), MPI_ERR_OP);
}

static void communicators(void) {
    MPI_Comm comm = MPI_COMM_NULL, world = MPI_COMM_WORLD, out;
    MPI_Group group = MPI_GROUP_NULL;
    MPI_Info info = MPI_INFO_NULL;
    int value, flag;
    EXPECT_ERROR(MPI_Comm_free(&comm), MPI_ERR_COMM);
    EXPECT_ERROR(MPI_Comm_free(&world), MPI_ERR_COMM);
    EXPECT_ERROR(MPI_Comm_dup(MPI_COMM_NULL, &out), MPI_ERR_COMM);
    EXPECT_ERROR(MPI_Comm_rank(MPI_COMM_NULL, &value), MPI_ERR_COMM);
    // A collective must not wait for a member with wrong arguments.
    EXPECT_ERROR(MPI_Comm_split(MPI_COMM_WORLD, rank ? 0 : -5, 0, &out), MPI_ERR_ARG);
    CHECK(out == MPI_COMM_NULL);
    EXPECT_ERROR(MPI_Comm_split_type(MPI_COMM_WORLD, rank ? MPI_COMM_TYPE_SHARED : -5, 0, MPI_INFO_NULL, &out), MPI_ERR_ARG);
    EXPECT_ERROR(MPI_Comm_size(MPI_COMM_NULL, &value), MPI_ERR_COMM);
    EXPECT_ERROR(MPI_Comm_remote_size(MPI_COMM_WORLD, &value), MPI_ERR_COMM);
    EXPECT_ERROR(MPI_Group_size(MPI_GROUP_NULL, &value), MPI_ERR_GROUP);
    EXPECT_ERROR(MPI_Group_free(&group), MPI_ERR_GROUP);
    CHECK(MPI_Info_free(&info) != MPI_SUCCESS, "freeing MPI_INFO_NULL");
    OK(MPI_Info_create(&info));
    char key[MPI_MAX_INFO_KEY + 2];
    memset(key, 'k', sizeof key);
    key[sizeof key - 1] = 0;
    EXPECT_ERROR(MPI_Info_set(info, key, "value"), MPI_ERR_INFO_KEY);
    EXPECT_ERROR(MPI_Info_set(info, "", "value"), MPI_ERR_INFO_KEY);
    EXPECT_ERROR(MPI_Info_delete(info, "not there"), MPI_ERR_INFO_NOKEY);
#if MPI_AT_LEAST(4, 0)
    MPI_Session session;
    OK(MPI_Info_set(info, "thread_level", "MPI_THREAD_NONSENSE"));
    EXPECT_ERROR(MPI_Session_init(info, MPI_ERRORS_RETURN, &session), MPI_ERR_INFO_VALUE);
#endif
    OK(MPI_Info_free(&info));
    EXPECT_ERROR(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_KEYVAL_INVALID, &value, &flag), MPI_ERR_KEYVAL);
}

#if MPI_AT_LEAST(5, 0)
// A freed handle that is used again returns an error. Only libraries whose handles encode a generation promise this.
static void freed_handles(void) {
    int value = 0;
    MPI_Comm comm, comm_copy;
    OK(MPI_Comm_dup(MPI_COMM_SELF, &comm));
    comm_copy = comm;
    OK(MPI_Comm_free(&comm));
    EXPECT_ERROR(MPI_Comm_rank(comm_copy, &value), MPI_ERR_COMM);
    EXPECT_ERROR(MPI_Send(&value, 1, MPI_INT, 0, 0, comm_copy), MPI_ERR_COMM);
    MPI_Datatype type, type_copy;
    OK(MPI_Type_contiguous(2, MPI_INT, &type));
    OK(MPI_Type_commit(&type));
    type_copy = type;
    OK(MPI_Type_free(&type));
    EXPECT_ERROR(MPI_Type_size(type_copy, &value), MPI_ERR_TYPE);
    MPI_Group group, group_copy;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &group));
    group_copy = group;
    OK(MPI_Group_free(&group));
    EXPECT_ERROR(MPI_Group_size(group_copy, &value), MPI_ERR_GROUP);
    MPI_Info info, info_copy;
    OK(MPI_Info_create(&info));
    info_copy = info;
    OK(MPI_Info_free(&info));
    EXPECT_ERROR(MPI_Info_set(info_copy, "a", "b"), MPI_ERR_INFO);
    MPI_Request request, request_copy;
    OK(MPI_Recv_init(&value, 1, MPI_INT, rank, 4, MPI_COMM_WORLD, &request));
    request_copy = request;
    OK(MPI_Request_free(&request));
    EXPECT_ERROR(MPI_Start(&request_copy), MPI_ERR_REQUEST);
    EXPECT_ERROR(MPI_Comm_rank((MPI_Comm)(intptr_t)0, &value), MPI_ERR_COMM);  // a zeroed handle
}
#endif

int main(int argc, char** argv) {
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    point_to_point();
    requests();
    types();
    collectives();
    communicators();
#if MPI_AT_LEAST(5, 0)
    if (getenv("TEST_FREED_HANDLES")) freed_handles();
#endif
    int sum = rank;  // checks that the library still works
    OK(MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    EXPECT_INT(sum, size * (size - 1) / 2);
    OK(MPI_Finalize());
    return 0;
}
