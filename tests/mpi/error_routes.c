// Tests which handler gets an error. An error of a call with a communicator goes to its handler, whatever else is wrong. An error tied to
// no object goes to MPI_COMM_SELF's handler or, if none was set, to MPI_COMM_WORLD's. File errors go to the file's handler. Calls without a
// communicator use the handler passed to them. MPI_Info_create_env works at any time.
#include "check.h"

static MPI_Comm heard;
static int calls;
static void on_error(MPI_Comm* comm, int* code, ...) {
    (void)code;
    heard = *comm;
    calls++;
}

#define HEARD_ON(comm, call)                                        \
    do {                                                            \
        calls = 0, heard = MPI_COMM_NULL;                           \
        if ((call) == MPI_SUCCESS) CHECK(0, "%s succeeded", #call); \
        EXPECT_INT(calls, 1);                                       \
        CHECK(heard == (comm), "%s: the wrong handler", #call);     \
    } while (0)

static MPI_File file_heard;
static void on_file_error(MPI_File* file, int* code, ...) {
    (void)code;
    file_heard = *file;
    calls++;
}

// Errors of file functions go to the file's handler, which returns them by default, even in builds without MPI-IO.
static void files(void) {
    MPI_File file;
    MPI_Errhandler handler;
    CHECK(MPI_File_open(MPI_COMM_SELF, "/nowhere/at/all", MPI_MODE_RDONLY, MPI_INFO_NULL, &file) != MPI_SUCCESS);
    CHECK(MPI_File_delete("/nowhere/at/all", MPI_INFO_NULL) != MPI_SUCCESS);
    OK(MPI_File_create_errhandler(on_file_error, &handler));
    OK(MPI_File_set_errhandler(MPI_FILE_NULL, handler));
    calls = 0, file_heard = (MPI_File)1;
    CHECK(MPI_File_open(MPI_COMM_SELF, "/nowhere/at/all", MPI_MODE_RDONLY, MPI_INFO_NULL, &file) != MPI_SUCCESS);
    EXPECT_INT(calls, 1);
    CHECK(file_heard == MPI_FILE_NULL);
    OK(MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN));
    OK(MPI_Errhandler_free(&handler));
}

// Creations from groups report errors to the handler that they are passed. A leader that fails reports its error to its group.
static void from_groups(MPI_Errhandler handler) {
#if MPI_AT_LEAST(4, 0)
    int rank, size, is_last, last;
    MPI_Group world, self, other, empty = MPI_GROUP_EMPTY;
    MPI_Comm made = MPI_COMM_WORLD;
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    last = size - 1, is_last = rank == last;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_incl(world, 1, &last, &self));
    OK(MPI_Group_excl(world, 1, &last, &other));
    HEARD_ON(MPI_COMM_NULL, MPI_Comm_create_from_group(MPI_GROUP_NULL, "tag", MPI_INFO_NULL, handler, &made));
    CHECK(made == MPI_COMM_NULL);
    HEARD_ON(MPI_COMM_NULL, MPI_Comm_create_from_group(self, NULL, MPI_INFO_NULL, handler, &made));
    if (size > 1) HEARD_ON(MPI_COMM_NULL, MPI_Comm_create_from_group(is_last ? other : self, "tag", MPI_INFO_NULL, handler, &made));
    HEARD_ON(MPI_COMM_NULL, MPI_Intercomm_create_from_groups(empty, 0, world, 0, "tag", MPI_INFO_NULL, handler, &made));
    HEARD_ON(MPI_COMM_NULL, MPI_Intercomm_create_from_groups(world, 0, self, 7, "tag", MPI_INFO_NULL, handler, &made));
    HEARD_ON(MPI_COMM_NULL,
             MPI_Intercomm_create_from_groups(world, last, MPI_GROUP_NULL, 0, "tag", MPI_INFO_NULL, handler, &made));
    HEARD_ON(MPI_COMM_SELF, MPI_Comm_create_from_group(world, "tag", MPI_INFO_NULL, MPI_ERRHANDLER_NULL, &made));
    OK(MPI_Group_free(&world));
    OK(MPI_Group_free(&self));
    OK(MPI_Group_free(&other));
#else
    (void)handler;
#endif
}

static void same_as(const char* const* first, int argc, char** argv, const char** out) {
    static char texts[4][4][MPI_MAX_INFO_VAL + 1];
    static int turn;
    static const char* const keys[] = {"command", "host", "arch", "wdir"};
    MPI_Info info;
    int count;
    OK(MPI_Info_create_env(argc, argv, &info));
    OK(MPI_Info_get_nkeys(info, &count));
    EXPECT_INT(count, 4);
    for (int i = 0; i < 4; i++) {
        int flag, length = MPI_MAX_INFO_VAL + 1;
        OK(MPI_Info_get_string(info, keys[i], &length, texts[turn][i], &flag));
        EXPECT_INT(flag, 1);
        if (first) CHECK(strcmp(first[i], texts[turn][i]) == 0, "%s was %s, is %s", keys[i], first[i], texts[turn][i]);
        out[i] = texts[turn][i];
    }
    turn++;
    OK(MPI_Info_free(&info));
}

int main(int argc, char** argv) {
    int value, flag;
    MPI_Comm comm, made;
    MPI_Errhandler handler, got;
    MPI_Group group;
    MPI_Request request;
    const char *before[4], *later[4];
    same_as(NULL, argc, argv, before);
    OK(MPI_Init(&argc, &argv));
    same_as(before, argc, argv, later);
    files();
    OK(MPI_Comm_create_errhandler(on_error, &handler));
    OK(MPI_Comm_dup(MPI_COMM_SELF, &comm));
    OK(MPI_Comm_set_errhandler(comm, handler));

    // If no handler was set on MPI_COMM_SELF, MPI_COMM_WORLD's is used, for programs written before MPI 4.
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler));
    HEARD_ON(MPI_COMM_WORLD, MPI_Comm_size(MPI_COMM_NULL, &value));
    HEARD_ON(MPI_COMM_WORLD, MPI_Type_size(MPI_DATATYPE_NULL, &value));
    HEARD_ON(MPI_COMM_WORLD, MPI_Group_size(MPI_GROUP_NULL, &value));

    HEARD_ON(comm, MPI_Comm_size(comm, NULL));
    HEARD_ON(comm, MPI_Comm_rank(comm, NULL));
    HEARD_ON(comm, MPI_Comm_test_inter(comm, NULL));
    HEARD_ON(comm, MPI_Comm_group(comm, NULL));
    HEARD_ON(comm, MPI_Comm_compare(comm, MPI_COMM_WORLD, NULL));
    HEARD_ON(comm, MPI_Comm_get_errhandler(comm, NULL));
    HEARD_ON(comm, MPI_Iprobe(0, 0, comm, NULL, MPI_STATUS_IGNORE));
    HEARD_ON(comm, MPI_Mprobe(0, 0, comm, NULL, MPI_STATUS_IGNORE));
    HEARD_ON(comm, MPI_Improbe(0, 0, comm, &flag, NULL, MPI_STATUS_IGNORE));
    HEARD_ON(comm, MPI_Ibsend(&value, 1, MPI_INT, 0, 0, comm, NULL));
    HEARD_ON(comm, MPI_Isend(&value, 1, MPI_INT, 0, 0, comm, NULL));
    HEARD_ON(comm, MPI_Comm_dup(comm, NULL));
    HEARD_ON(comm, MPI_Comm_split(comm, -77, 0, &made));
    HEARD_ON(comm, MPI_Comm_create(comm, MPI_GROUP_NULL, &made));
    HEARD_ON(comm, MPI_Send(&value, 1, MPI_DATATYPE_NULL, 0, 0, comm));
    HEARD_ON(comm, MPI_Recv(&value, -1, MPI_INT, 0, 0, comm, MPI_STATUS_IGNORE));
    HEARD_ON(comm, MPI_Recv_init(&value, 1, MPI_INT, 5, 0, comm, &request));
    HEARD_ON(comm, MPI_Bcast(&value, 1, MPI_INT, 99, comm));

    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, handler));
    HEARD_ON(MPI_COMM_SELF, MPI_Type_size(MPI_DATATYPE_NULL, &value));
    HEARD_ON(MPI_COMM_SELF, MPI_Group_incl(MPI_GROUP_NULL, 0, NULL, &group));
    from_groups(handler);
    OK(MPI_Comm_get_errhandler(comm, &got));
    CHECK(got == handler, "another handler");
    OK(MPI_Errhandler_free(&got));
    OK(MPI_Errhandler_free(&handler));
    OK(MPI_Comm_free(&comm));
    OK(MPI_Finalize());
    same_as(before, argc, argv, later);
    return 0;
}
