// Files whose members die: `deaths close FOLDER RANK US`, `deaths sync FOLDER BACKING RANK`, `deaths calls FOLDER - RANK`. The survivors close
// a file that is deleted on close, store their writes, or call every function. A rank that dies at once is killed before the call; otherwise US
// microseconds after all have begun it.
#define _GNU_SOURCE
#include <fcntl.h>
#include <mpi-ext.h>
#include <mpi.h>
#include <unistd.h>

#include "death.h"

enum { kMine = 5000 };

static int rank, size, doomed;

static MPI_File open_file(const char* folder, int further) {
    char path[4000];
    MPI_File file;
    snprintf(path, sizeof path, "%s/file", folder);
    OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR | MPI_MODE_CREATE | further, MPI_INFO_NULL, &file));
    return file;
}

/// Lets all ranks begin together. The doomed one returns when all have left the barrier, which would fail on a rank that is still in it.
static void begin(void) {
    OK(MPI_Barrier(MPI_COMM_WORLD));
    is_doomed_and_all_are_ready(MPI_COMM_WORLD, &doomed, 1);
}

static void test_close(const char* folder, long us) {
    MPI_File file = open_file(folder, MPI_MODE_DELETE_ON_CLOSE);
    begin();
    if (rank == doomed) die_after(us);
    const int error = MPI_File_close(&file);
    if (rank == doomed) pause();
    CHECK(file == MPI_FILE_NULL, "the file is still open");
    if (us == 0) EXPECT_INT(class_of(error), MPIX_ERR_PROC_FAILED);
    CHECK(error == MPI_SUCCESS || class_of(error) == MPIX_ERR_PROC_FAILED, "class %d", class_of(error));
    char path[4000];
    snprintf(path, sizeof path, "%s/file", folder);
    CHECK(access(path, F_OK) != 0, "the file is still there");
    printf("rank %d has closed the file\n", rank);
}

static void check_backing(const char* backing) {
    char path[4000], found[kMine];
    snprintf(path, sizeof path, "%s/file", backing);
    const int file = open(path, O_RDONLY);
    CHECK(file >= 0);
    CHECK(pread(file, found, kMine, (off_t)rank * kMine) == kMine, "the data of rank %d is not stored", rank);
    CHECK(first_wrong_byte(found, kMine, (uint64_t)rank) < 0, "the data of rank %d is not stored", rank);
    CHECK(close(file) == 0);
}

/// The first MPI_File_sync, in which the members choose those that store the file, and a later one.
static void test_sync(const char* folder, const char* backing) {
    char mine[kMine];
    MPI_File file = open_file(folder, 0);
    fill_bytes(mine, kMine, (uint64_t)rank);
    OK(MPI_File_write_at(file, (MPI_Offset)rank * kMine, mine, kMine, MPI_BYTE, MPI_STATUS_IGNORE));
    begin();
    if (rank == doomed) die_after(0);
    for (int turn = 0; turn < 2; ++turn) {
        EXPECT_INT(class_of(MPI_File_sync(file)), MPIX_ERR_PROC_FAILED);
        check_backing(backing);
    }
    EXPECT_INT(class_of(MPI_File_close(&file)), MPIX_ERR_PROC_FAILED);
    printf("rank %d has stored its data\n", rank);
}

#define FAILS(call) EXPECT_INT(class_of(call), MPIX_ERR_PROC_FAILED)

/// Calls that need the dead rank fail on all survivors and do not wait. Calls that need no other process work.
static void test_calls(const char* folder) {
    char byte = 'x';
    MPI_Request request;
    MPI_Offset at;
    MPI_File file = open_file(folder, MPI_MODE_DELETE_ON_CLOSE);
    begin();
    if (rank == doomed) die_after(0);
    FAILS(MPI_File_write_at_all(file, rank, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE));
    FAILS(MPI_File_read_all(file, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE));
    FAILS(MPI_File_write_ordered(file, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE));
    OK(MPI_File_iwrite_at_all(file, rank, &byte, 1, MPI_BYTE, &request));
    FAILS(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_File_write_all_begin(file, &byte, 1, MPI_BYTE));
    FAILS(MPI_File_write_all_end(file, &byte, MPI_STATUS_IGNORE));
    OK(MPI_File_read_ordered_begin(file, &byte, 1, MPI_BYTE));
    FAILS(MPI_File_read_ordered_end(file, &byte, MPI_STATUS_IGNORE));
    FAILS(MPI_File_set_size(file, 100));
    FAILS(MPI_File_preallocate(file, 100));
    FAILS(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    FAILS(MPI_File_set_atomicity(file, 1));
    FAILS(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
    FAILS(MPI_File_set_info(file, MPI_INFO_NULL));
    // The shared pointer is at rank 0.
    const int error = MPI_File_write_shared(file, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE);
    if (doomed == 0 && error != MPI_SUCCESS) FAILS(error);
    if (doomed != 0) OK(error);
    OK(MPI_File_write_at(file, 50 + rank, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE));
    OK(MPI_File_read_at(file, 50 + rank, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE));
    OK(MPI_File_get_size(file, &at));
    FAILS(MPI_File_close(&file));
    // The survivors open the file anew.
    MPI_Comm survivors;
    OK(MPIX_Comm_shrink(MPI_COMM_WORLD, &survivors));
    char path[4000];
    snprintf(path, sizeof path, "%s/file", folder);
    OK(MPI_File_open(survivors, path, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                     &file));
    OK(MPI_File_write_ordered(file, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE));
    OK(MPI_File_get_size(file, &at));
    EXPECT_INT(at, size - 1);
    OK(MPI_File_close(&file));
    OK(MPI_Comm_free(&survivors));
    printf("rank %d has ended all calls\n", rank);
}

int main(int argc, char** argv) {
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    CHECK(argc == 5, "arguments: close FOLDER RANK US, sync FOLDER BACKING RANK, or calls FOLDER - RANK");
    const int closes = strcmp(argv[1], "close") == 0;
    doomed = atoi(argv[closes ? 3 : 4]);
    if (closes)
        test_close(argv[2], atol(argv[4]));
    else if (strcmp(argv[1], "calls") == 0)
        test_calls(argv[2]);
    else
        test_sync(argv[2], argv[3]);
    OK(MPI_Finalize());
    return 0;
}
