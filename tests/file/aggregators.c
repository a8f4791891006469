// Aggregators of collective transfers that get an error or die: `aggregators space MOUNT RANK`, `aggregators death FOLDER RANK PERCENT`. The
// mount of that rank has no more space, or the rank dies when it has done that share of a write and a read. All others get an error.
#define _GNU_SOURCE
#include <mpi-ext.h>
#include <mpi.h>
#include <sys/xattr.h>

#include "death.h"

enum { kPiece = 300, kPieces = 400, kMine = kPiece * kPieces };

static int rank, size;
static char mine[kMine], back[kMine];

/// Opens a file in the folder with a view in which pieces of the ranks follow each other. Small buffers make many rounds.
static MPI_File open_file(const char* folder) {
    char path[4000];
    MPI_File file;
    MPI_Info info;
    MPI_Datatype piece, row;
    snprintf(path, sizeof path, "%s/file", folder);
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "cb_buffer_size", "32768"));
    OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR | MPI_MODE_CREATE, info, &file));
    OK(MPI_Info_free(&info));
    OK(MPI_Type_contiguous(kPiece, MPI_BYTE, &piece));
    OK(MPI_Type_create_resized(piece, 0, (MPI_Aint)kPiece * size, &row));
    OK(MPI_Type_commit(&row));
    OK(MPI_File_set_view(file, (MPI_Offset)rank * kPiece, MPI_BYTE, row, "native", MPI_INFO_NULL));
    OK(MPI_Type_free(&row));
    OK(MPI_Type_free(&piece));
    memset(mine, 'a' + rank, sizeof mine);
    return file;
}

static int write_all(MPI_File file) { return MPI_File_write_at_all(file, 0, mine, kMine, MPI_BYTE, MPI_STATUS_IGNORE); }
static int read_all(MPI_File file) { return MPI_File_read_at_all(file, 0, back, kMine, MPI_BYTE, MPI_STATUS_IGNORE); }

static void limit_space(const char* mount, int full_rank, const char* bytes) {
    if (rank == full_rank) CHECK(setxattr(mount, "user.space", bytes, strlen(bytes), 0) == 0);
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

/// The space of one rank's mount ends in one of the first rounds, or in a later one.
static void test_space(const char* mount, int full_rank) {
    MPI_File file = open_file(mount);
    for (int turn = 0; turn < 3; ++turn) {
        limit_space(mount, full_rank, turn == 0 ? "0" : turn == 1 ? "20000" : "150000");
        EXPECT_ERROR(write_all(file), MPI_ERR_NO_SPACE);
        limit_space(mount, full_rank, "-1");
        OK(write_all(file));
        OK(read_all(file));
        CHECK(memcmp(mine, back, sizeof mine) == 0, "turn %d", turn);
    }
    OK(MPI_File_close(&file));
}

/// Returns the microseconds of a write and a read.
static long measure(MPI_File file) {
    OK(MPI_Barrier(MPI_COMM_WORLD));
    const double began = MPI_Wtime();
    OK(write_all(file));
    OK(read_all(file));
    return (long)((MPI_Wtime() - began) * 1e6);
}

static void test_death(const char* folder, int doomed, int percent) {
    MPI_File file = open_file(folder);
    measure(file);
    const long us = measure(file);
    OK(MPI_Barrier(MPI_COMM_WORLD));  // all begin together
    if (is_doomed_and_all_are_ready(MPI_COMM_WORLD, &doomed, 1)) die_after(us * percent / 100 + 1);
    int error = MPI_SUCCESS;
    for (int call = 0; error == MPI_SUCCESS; ++call) error = call % 2 ? read_all(file) : write_all(file);
    CHECK(rank != doomed, "the rank is alive");
    EXPECT_INT(class_of(error), MPIX_ERR_PROC_FAILED);
    CHECK(MPI_File_close(&file) != MPI_SUCCESS, "a file with a dead member was closed");
    printf("rank %d has the error\n", rank);
}

int main(int argc, char** argv) {
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    CHECK(argc >= 4, "arguments: space MOUNT RANK, or death FOLDER RANK PERCENT");
    if (argc == 4)
        test_space(argv[2], atoi(argv[3]));
    else
        test_death(argv[2], atoi(argv[3]), atoi(argv[4]));
    OK(MPI_Finalize());
    return 0;
}
