// A rank dies while the others use a file (--enable-recovery). The first argument is its rank. The others learn of the death by a collective
// call, revoke the file and close it without the dead rank; the file is deleted. Then they open it again among themselves.
#include <mpi-ext.h>
#include <signal.h>

#include "files.h"

enum { kNumbers = 1024 };

static int rank, size, doomed, numbers[kNumbers];
static MPI_File file;

static void expect_failed(void) {
    MPI_Group all, failed;
    int count = 0, who = 0, place = -1;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &all));
    for (;;) {  // this rank may learn of the death later than others
        OK(MPIX_File_get_failed(file, &failed));
        OK(MPI_Group_size(failed, &count));
        if (count > 0) break;
        OK(MPI_Group_free(&failed));
    }
    EXPECT_INT(count, 1);
    OK(MPI_Group_translate_ranks(failed, 1, &who, all, &place));
    EXPECT_INT(place, doomed);
    OK(MPI_Group_free(&failed));
    OK(MPI_Group_free(&all));
}

/// Writes until the death of a member, or the revocation of another member that has noticed it, ends a call.
static void write_until_error(int what) {
    int code = MPI_SUCCESS;
    for (int round = 0; code == MPI_SUCCESS; ++round) {
        if (rank == doomed && round == 2 + what) raise(SIGKILL);
        switch (what) {
            case 0:
                code = MPI_File_write_at_all(file, rank * kNumbers, numbers, kNumbers, MPI_INT, MPI_STATUS_IGNORE);
                break;
            case 1:
                code = MPI_File_write_ordered(file, numbers, kNumbers, MPI_INT, MPI_STATUS_IGNORE);
                break;
            default:
                code = MPI_File_sync(file);
        }
    }
    CHECK(class_of(code) == MPIX_ERR_PROC_FAILED || class_of(code) == MPIX_ERR_REVOKED, "class %d", class_of(code));
}

int main(int argc, char** argv) {
    char name[256];
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    doomed = argc > 1 ? atoi(argv[1]) : size - 1;
    new_file_name(name);
    const int amode = MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE;
    OK(MPI_File_open(MPI_COMM_WORLD, name, amode, MPI_INFO_NULL, &file));
    OK(MPI_File_set_errhandler(file, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    write_until_error(argc > 2 ? atoi(argv[2]) : 0);
    OK(MPIX_File_revoke(file));
    EXPECT_INT(class_of(MPI_File_write_shared(file, numbers, 1, MPI_INT, MPI_STATUS_IGNORE)), MPIX_ERR_REVOKED);
    EXPECT_INT(class_of(MPI_File_read_at_all(file, 0, numbers, 1, MPI_INT, MPI_STATUS_IGNORE)), MPIX_ERR_REVOKED);
    expect_failed();
    OK(MPI_File_close(&file));
    MPI_Comm living;
    OK(MPIX_Comm_shrink(MPI_COMM_WORLD, &living));
    OK(MPI_Barrier(living));
    CHECK(access(name, F_OK) != 0, "the file %s was not deleted", name);
    OK(MPI_File_open(living, name, amode, MPI_INFO_NULL, &file));
    OK(MPI_File_write_ordered(file, numbers, kNumbers, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_File_close(&file));
    int first;
    OK(MPI_Comm_rank(living, &first));
    if (first == 0) printf("the file went on without rank %d\n", doomed);
    OK(MPI_Comm_free(&living));
    OK(MPI_Finalize());
    return 0;
}
