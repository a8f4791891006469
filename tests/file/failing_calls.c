// Transfers on the file system for tests, one of whose calls fails: `failing_calls MOUNT [RANK]`. The n-th call of that rank's mount fails,
// for n = 1, 2, ... until several rounds pass without a failure. Every function returns MPI_SUCCESS or MPI_ERR_IO, collective ones the same
// on all processes, and no byte outside the views changes.
#define _GNU_SOURCE
#include <fcntl.h>
#include <mpi.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "check.h"

enum { kBlock = 700, kBlocks = 40, kHole = 300, kMostRounds = 400, kMostPassed = 6 };

static int rank, size, victim;
static const char* mount;
static int failures;  // in this round, at this process

static MPI_Offset row_bytes(void) { return size * kBlock + kHole; }

/// Notes the result of a function. `together`: all processes must have the same result.
static void note(int line, int error, int together) {
    int found = MPI_SUCCESS, least, most;
    OK(MPI_Error_class(error, &found));
    if (found != MPI_SUCCESS && found != MPI_ERR_IO) fail_at(__FILE__, line, "class", "%d", found);
    failures += found != MPI_SUCCESS;
    if (!together) return;
    OK(MPI_Allreduce(&found, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD));
    OK(MPI_Allreduce(&found, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
    if (least != most) fail_at(__FILE__, line, "result", "%d here, %d to %d on all processes", found, least, most);
}
#define ALONE(call) note(__LINE__, call, 0)
#define TOGETHER(call) note(__LINE__, call, 1)

static void control(const char* name, int value) {
    char text[20];
    snprintf(text, sizeof text, "%d", value);
    if (rank == victim) CHECK(setxattr(mount, name, text, strlen(text), 0) == 0);
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

/// Fills the file with '.', by way of a separate descriptor.
static void prepare(const char* path) {
    if (rank == 0) {
        const size_t bytes = (size_t)row_bytes() * kBlocks;
        char* const dots = malloc(bytes);
        memset(dots, '.', bytes);
        const int file = open(path, O_CREAT | O_TRUNC | O_RDWR, 0600);
        CHECK(file >= 0 && pwrite(file, dots, bytes, 0) == (ssize_t)bytes && close(file) == 0);
        free(dots);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

/// Checks the holes, and with `complete` also the blocks.
static void verify(const char* path, int complete) {
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0) {
        const size_t bytes = (size_t)row_bytes() * kBlocks;
        char* const found = calloc(1, bytes);
        const int file = open(path, O_RDONLY);
        CHECK(file >= 0 && pread(file, found, bytes, 0) == (ssize_t)bytes && close(file) == 0);
        for (size_t i = 0; i < bytes; ++i) {
            const size_t column = i % (size_t)row_bytes();
            const char wanted = column < (size_t)size * kBlock ? (char)('a' + column / kBlock) : '.';
            const int known = found[i] == wanted || (!complete && found[i] == '.');
            if (!known) fail_at(__FILE__, __LINE__, "contents", "byte %zu is %d instead of %d", i, found[i], wanted);
        }
        free(found);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

static MPI_Datatype my_blocks(void) {
    MPI_Datatype blocks;
    const int length = kBlock;
    const MPI_Aint at = (MPI_Aint)rank * kBlock;
    MPI_Datatype one;
    OK(MPI_Type_create_hindexed(1, &length, &at, MPI_BYTE, &one));
    OK(MPI_Type_create_resized(one, 0, row_bytes(), &blocks));
    OK(MPI_Type_free(&one));
    OK(MPI_Type_commit(&blocks));
    return blocks;
}

static void transfers(MPI_File file, MPI_Datatype blocks) {
    static char data[kBlock * kBlocks];
    memset(data, 'a' + rank, sizeof data);
    TOGETHER(MPI_File_set_view(file, 0, MPI_BYTE, blocks, "native", MPI_INFO_NULL));
    TOGETHER(MPI_File_write_at_all(file, 0, data, sizeof data / 2, MPI_BYTE, MPI_STATUS_IGNORE));
    ALONE(MPI_File_write_at(file, sizeof data / 2, data, sizeof data / 2, MPI_BYTE, MPI_STATUS_IGNORE));
    TOGETHER(MPI_File_sync(file));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    TOGETHER(MPI_File_sync(file));
    const int failed_writes = failures;
    memset(data, 0, sizeof data);
    TOGETHER(MPI_File_read_at_all(file, 0, data, sizeof data / 2, MPI_BYTE, MPI_STATUS_IGNORE));
    ALONE(MPI_File_read_at(file, sizeof data / 2, data + sizeof data / 2, sizeof data / 2, MPI_BYTE, MPI_STATUS_IGNORE));
    int all = failed_writes || failures;
    OK(MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_LOR, MPI_COMM_WORLD));
    for (size_t i = 0; i < sizeof data && !all; ++i) CHECK(data[i] == 'a' + rank, "byte %zu", i);
}

/// Returns whether a function has failed in a round in which the `number`-th call fails.
static int round_failed(const char* path, int number) {
    failures = 0;
    prepare(path);
    MPI_Datatype blocks = my_blocks();
    control("user.fail_at", number);
    MPI_File file = MPI_FILE_NULL;
    TOGETHER(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    if (file != MPI_FILE_NULL) {
        transfers(file, blocks);
        TOGETHER(MPI_File_close(&file));
    }
    OK(MPI_Type_free(&blocks));
    control("user.fail_at", 0);
    OK(MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    verify(path, failures == 0);
    return failures > 0;
}

int main(int argc, char** argv) {
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    CHECK(argc == 2 || argc == 3, "arguments: MOUNT [RANK]");
    victim = argc == 3 ? atoi(argv[2]) : 0;
    mount = argv[1];
    char path[4000];
    snprintf(path, sizeof path, "%s/failing", mount);
    CHECK(!round_failed(path, 0));
    int rounds = 0, failed = 0;
    // The kernel repeats a call of its own that has failed, such as a read ahead, so a round may pass before the last one.
    for (int passed = 0; rounds < kMostRounds && passed < kMostPassed; ++rounds) {
        const int has_failed = round_failed(path, rounds + 1);
        failed += has_failed;
        passed = has_failed ? 0 : passed + 1;
    }
    CHECK(failed > 1 && rounds < kMostRounds, "%d rounds", rounds);
    if (rank == 0) printf("%d of the calls have failed in turn\n", failed);
    if (rank == 0) CHECK(unlink(path) == 0);
    OK(MPI_Finalize());
    return 0;
}
