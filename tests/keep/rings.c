// Processes on two hosts form two rings of partners, 0 and 2, 1 and 3, which exchange no blocks. Saves that differ between the rings fail on all
// processes. The test presents two halves of the ranks as hosts.
#include "blocks.h"

static int rank;

int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm* result) {
    int here, size;
    (void)type, (void)info;
    OK(MPI_Comm_rank(comm, &here));
    OK(MPI_Comm_size(comm, &size));
    return MPI_Comm_split(comm, 2 * here / size, key, result);
}

static void expect_refusal(starling_keep store, const char* name, long long version) {
    char memory[8] = "abcdefg";
    EXPECT_INT(starling_keep_save(store, name, memory, sizeof memory, version), MPI_ERR_ARG);
    CHECK(strstr(starling_keep_message(), "not all processes have given valid and equal arguments"), "the message is: %s",
          starling_keep_message());
    long long latest;
    KEEP_OK(starling_keep_latest(store, "a", &latest, NULL));
    EXPECT_INT(latest, 6);
    for (long long kept = 5; kept < 7; ++kept) {
        size_t bytes = sizeof memory;
        KEEP_OK(starling_keep_fetch(store, "a", (rank + 1) % 4, memory, &bytes, &kept));
    }
}

int main(int argc, char** argv) {
    // Hashes of a name and of 7 or one of these versions have 13 bits in common, which an earlier store compared.
    const long long like_seven[] = {12810, 13684, 17237};
    int size;
    starling_keep store;
    char memory[8] = "abcdefg";
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    CHECK(size == 4, "usage: mpiexec -n 4 rings");
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    KEEP_OK(starling_keep_create(MPI_COMM_WORLD, STARLING_KEEP_UNBOUNDED, &store));
    for (int version = 5; version < 7; ++version) KEEP_OK(starling_keep_save(store, "a", memory, sizeof memory, version));
    for (int i = 0; i < 3; ++i) expect_refusal(store, "a", rank % 2 ? like_seven[i] : 7);
    expect_refusal(store, "a", rank % 2 ? 6 : 7);
    expect_refusal(store, rank % 2 ? "a" : "b", 7);
    KEEP_OK(starling_keep_save(store, "a", memory, sizeof memory, 7));
    KEEP_OK(starling_keep_free(&store));
    OK(MPI_Finalize());
    return 0;
}
