// One rank revokes a file while the others wait in a collective call on it, blocking, non-blocking or split, or use the shared pointer: every
// pending and later call on it returns MPIX_ERR_REVOKED, and MPI_File_close closes and deletes it. No rank dies.
#include <mpi-ext.h>

#include "files.h"

static int rank, size;
static int numbers[1024];

enum { kNumbers = 1024 };

static void expect_revoked(int code, int what) {
    CHECK(class_of(code) == MPIX_ERR_REVOKED, "call %d gave class %d", what, class_of(code));
}

static int wait_for(int code, MPI_Request* request) { return code ? code : MPI_Wait(request, MPI_STATUS_IGNORE); }

/// Waits in a collective call in which rank 0 does not take part, or uses the shared pointer until the file is revoked. Returns the error.
static int wait_in(int what, MPI_File file) {
    MPI_Request request;
    int code;
    switch (what) {
        case 0:
            return MPI_File_write_all(file, numbers, kNumbers, MPI_INT, MPI_STATUS_IGNORE);
        case 1:
            return MPI_File_read_at_all(file, 0, numbers, kNumbers, MPI_INT, MPI_STATUS_IGNORE);
        case 2:
            return MPI_File_write_ordered(file, numbers, kNumbers, MPI_INT, MPI_STATUS_IGNORE);
        case 3:
            return wait_for(MPI_File_iwrite_all(file, numbers, kNumbers, MPI_INT, &request), &request);
        case 4:
            code = MPI_File_write_all_begin(file, numbers, kNumbers, MPI_INT);
            return code ? code : MPI_File_write_all_end(file, numbers, MPI_STATUS_IGNORE);
        case 5:
            code = MPI_File_read_ordered_begin(file, numbers, kNumbers, MPI_INT);
            return code ? code : MPI_File_read_ordered_end(file, numbers, MPI_STATUS_IGNORE);
        case 6:
            return MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
        case 7:
            return MPI_File_sync(file);
        case 8:
            return MPI_File_set_size(file, 100);
        case 9:
            return MPI_File_seek_shared(file, 5, MPI_SEEK_SET);
        case 10:
            return MPI_File_set_info(file, MPI_INFO_NULL);
        case 11:
            return MPI_File_preallocate(file, 1000);
        case 12:
            do code = MPI_File_write_shared(file, numbers, 1, MPI_INT, MPI_STATUS_IGNORE);
            while (code == MPI_SUCCESS);
            return code;
        case 13:
            do code = wait_for(MPI_File_iread_shared(file, numbers, 1, MPI_INT, &request), &request);
            while (code == MPI_SUCCESS);
            return code;
        case 14:
            do code = MPI_File_write_at(file, 0, numbers, 1, MPI_INT, MPI_STATUS_IGNORE);
            while (code == MPI_SUCCESS);
            return code;
        default:
            return MPI_File_set_atomicity(file, 1);
    }
}
enum { kCalls = 16 };

/// Every call that is not local fails on a revoked file.
static void try_all(MPI_File file) {
    int flag = 0, failed = -1;
    MPI_Offset offset;
    MPI_Request request;
    MPI_Group group;
    while (!flag) OK(MPIX_File_is_revoked(file, &flag));  // another member may have learned of it earlier
    for (int what = 0; what < kCalls; ++what) expect_revoked(wait_in(what, file), 100 + what);
    expect_revoked(MPI_File_get_position_shared(file, &offset), 30);
    expect_revoked(MPI_File_read(file, numbers, 1, MPI_INT, MPI_STATUS_IGNORE), 31);
    expect_revoked(MPI_File_iwrite_at(file, 0, numbers, 1, MPI_INT, &request), 32);
    OK(MPI_File_seek(file, 1, MPI_SEEK_SET));
    OK(MPI_File_get_position(file, &offset));
    EXPECT_INT(offset, 1);
    OK(MPI_File_get_size(file, &offset));
    OK(MPI_File_get_group(file, &group));
    OK(MPI_Group_free(&group));
    OK(MPIX_File_get_failed(file, &group));
    OK(MPI_Group_size(group, &failed));
    EXPECT_INT(failed, 0);
    OK(MPI_Group_free(&group));
}

/// Opens a file, with a hint that makes collective transfers use two phases if `two_phases`.
static MPI_File open_file(char name[256], int two_phases) {
    MPI_Info info;
    MPI_File file;
    int flag = 1;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "romio_cb_write", two_phases ? "enable" : "automatic"));
    OK(MPI_Info_set(info, "romio_cb_read", two_phases ? "enable" : "automatic"));
    new_file_name(name);
    const int amode = MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE;
    OK(MPI_File_open(MPI_COMM_WORLD, name, amode, info, &file));
    OK(MPI_Info_free(&info));
    OK(MPI_File_set_errhandler(file, MPI_ERRORS_RETURN));
    OK(MPIX_File_is_revoked(file, &flag));
    EXPECT_INT(flag, 0);
    OK(MPI_Barrier(MPI_COMM_WORLD));  // a revocation that arrives within MPI_File_open makes it fail
    return file;
}

static void close_file(MPI_File* file, const char* name) {
    OK(MPI_File_close(file));
    CHECK(*file == MPI_FILE_NULL, "the handle of a closed file is not null");
    OK(MPI_Barrier(MPI_COMM_WORLD));
    CHECK(access(name, F_OK) != 0, "the file %s was not deleted", name);
}

static void revoke_in(int what, int two_phases) {
    char name[256];
    MPI_File file = open_file(name, two_phases);
    int value = 0;
    for (int i = 0; i < what % 3; ++i) OK(MPI_File_write_at_all(file, 0, numbers, kNumbers, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0) {
        if (what % 2) OK(MPI_Recv(&value, 1, MPI_INT, size - 1, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(MPIX_File_revoke(file));
    } else {
        if (what % 2 && rank == size - 1) OK(MPI_Send(&value, 1, MPI_INT, 0, 9, MPI_COMM_WORLD));
        expect_revoked(wait_in(what, file), what);
    }
    try_all(file);
    close_file(&file, name);
}

/// The members are in the middle of a transfer when one of them revokes the file. Those that do not complete their operations close the file
/// all the same.
static void revoke_in_transfer(int splits, int two_phases) {
    char name[256];
    MPI_File file = open_file(name, two_phases);
    MPI_Request request = MPI_REQUEST_NULL;
    if (splits)
        OK(MPI_File_write_at_all_begin(file, rank * kNumbers, numbers, kNumbers, MPI_INT));
    else
        OK(MPI_File_iwrite_at_all(file, rank * kNumbers, numbers, kNumbers, MPI_INT, &request));
    if (rank == size - 1) OK(MPIX_File_revoke(file));
    if (rank == 0) {
        const int code =
            splits ? MPI_File_write_at_all_end(file, numbers, MPI_STATUS_IGNORE) : MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK(code == MPI_SUCCESS || class_of(code) == MPIX_ERR_REVOKED, "the transfer gave class %d", class_of(code));
    }
    for (int flag = 0; !flag;) OK(MPIX_File_is_revoked(file, &flag));
    close_file(&file, name);
    if (request != MPI_REQUEST_NULL) {  // an operation of the closed file
        OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
        const int code = MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK(code == MPI_SUCCESS || class_of(code) == MPIX_ERR_REVOKED, "the transfer gave class %d", class_of(code));
        OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
    }
}

/// The others are in MPI_File_close when rank 0 revokes the file, and close it.
static void revoke_while_closed(void) {
    char name[256];
    MPI_File file = open_file(name, 0);
    int value = 0;
    if (rank == 0) {
        OK(MPI_Recv(&value, 1, MPI_INT, size - 1, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(MPIX_File_revoke(file));
    } else if (rank == size - 1) {
        OK(MPI_Send(&value, 1, MPI_INT, 0, 9, MPI_COMM_WORLD));
    }
    close_file(&file, name);
}

int main(int argc, char** argv) {
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    for (int what = 0; what < kCalls; ++what) revoke_in(what, what / 2 % 2);
    for (int i = 0; i < 12; ++i) revoke_in_transfer(i % 2, i / 2 % 2);
    revoke_while_closed();
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0) puts("every call was revoked");
    OK(MPI_Finalize());
    return 0;
}
