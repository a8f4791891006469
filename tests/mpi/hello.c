// Tests start and end: init, rank and size, version, names, clocks, and the calls allowed before MPI_Init and after MPI_Finalize.
#include "check.h"

int main(int argc, char** argv) {
    int flag = -1, rank, size, version, subversion, length;
    OK(MPI_Initialized(&flag));
    EXPECT_INT(flag, 0);
    OK(MPI_Finalized(&flag));
    EXPECT_INT(flag, 0);
    OK(MPI_Get_version(&version, &subversion));
    CHECK(version >= 3, "%d.%d", version, subversion);
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    OK(MPI_Get_library_version(text, &length));
    EXPECT_INT(length, strlen(text));
    CHECK(length > 0 && length < MPI_MAX_LIBRARY_VERSION_STRING, "%d", length);

    OK(MPI_Init(&argc, &argv));
    OK(MPI_Initialized(&flag));
    EXPECT_INT(flag, 1);
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    CHECK(rank >= 0 && rank < size, "rank %d size %d", rank, size);
    const char* wanted = getenv("TEST_RANKS");
    if (wanted) EXPECT_INT(size, atoi(wanted));
    char name[MPI_MAX_PROCESSOR_NAME];
    OK(MPI_Get_processor_name(name, &length));
    EXPECT_INT(length, strlen(name));
    CHECK(length > 0, "processor without a name");
    int self_rank, self_size;
    OK(MPI_Comm_rank(MPI_COMM_SELF, &self_rank));
    OK(MPI_Comm_size(MPI_COMM_SELF, &self_size));
    EXPECT_INT(self_rank, 0);
    EXPECT_INT(self_size, 1);
    int provided;
    OK(MPI_Query_thread(&provided));
    CHECK(provided >= MPI_THREAD_SINGLE && provided <= MPI_THREAD_MULTIPLE, "%d", provided);
    OK(MPI_Is_thread_main(&flag));
    EXPECT_INT(flag, 1);
    double a = MPI_Wtime(), b = MPI_Wtime();
    CHECK(b >= a, "the clock runs backwards: %g after %g", b, a);
    CHECK(MPI_Wtick() > 0 && MPI_Wtick() < 0.1, "tick %g", MPI_Wtick());

    int* tag_upper_bound;
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &tag_upper_bound, &flag));
    CHECK(flag && *tag_upper_bound >= 32767, "MPI_TAG_UB");
    int* universe;
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &universe, &flag));
    if (flag) CHECK(*universe >= 1, "universe %d", *universe);
    int* appnum;
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &appnum, &flag));
    if (flag) EXPECT_INT(*appnum, 0);

    void* memory = NULL;
    OK(MPI_Alloc_mem(1 << 20, MPI_INFO_NULL, &memory));
    CHECK(memory != NULL);
    memset(memory, 1, 1 << 20);
    OK(MPI_Free_mem(memory));

    int sum = 0;
    OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    EXPECT_INT(sum, size * (size - 1) / 2);
    OK(MPI_Finalize());
    OK(MPI_Finalized(&flag));
    EXPECT_INT(flag, 1);
    OK(MPI_Initialized(&flag));
    EXPECT_INT(flag, 1);
    OK(MPI_Get_version(&version, &subversion));
    return 0;
}
