// Members whose drivers differ, as those of a server and its clients do, take the same steps in collective calls.
#include "files.h"

enum { kBytes = 40000 };

static unsigned char mine[kBytes], found[kBytes];

int main(int argc, char** argv) {
    int rank, size;
    char name[256], own_name[300], driver[MPI_MAX_INFO_VAL];
    MPI_File file;
    MPI_Info info;
    MPI_Datatype column;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    new_file_name(name);
    const char* const wanted = rank % 2 ? "nfs" : "posix";
    snprintf(own_name, sizeof own_name, "%s:%s", wanted, name);
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "romio_cb_write", "enable"));
    OK(MPI_Info_set(info, "romio_cb_read", "enable"));
    const int amode = MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE;
    OK(MPI_File_open(MPI_COMM_WORLD, own_name, amode, info, &file));
    OK(MPI_Info_free(&info));

    int flag;
    OK(MPI_File_get_info(file, &info));
    OK(MPI_Info_get(info, "starling_file_driver", sizeof driver - 1, driver, &flag));
    CHECK(flag && strcmp(driver, wanted) == 0, "driver %s", flag ? driver : "missing");
    char visible[MPI_MAX_INFO_VAL];
    OK(MPI_Info_get(info, "romio_visibility_immediate", sizeof visible - 1, visible, &flag));
    const char* const expected = on_one_host() ? "true" : "false";
    CHECK(flag && strcmp(visible, expected) == 0, "visibility %s, not %s", flag ? visible : "missing", expected);
    OK(MPI_Info_free(&info));

    OK(MPI_Type_create_resized(MPI_BYTE, 0, size, &column));
    OK(MPI_Type_commit(&column));
    OK(MPI_File_set_view(file, rank, MPI_BYTE, column, "native", MPI_INFO_NULL));
    for (int round = 0; round < 4; ++round) {
        memset(mine, 1 + rank + 20 * round, sizeof mine);
        OK(MPI_File_write_at_all(file, 0, mine, kBytes, MPI_BYTE, MPI_STATUS_IGNORE));
        OK(MPI_File_read_at_all(file, 0, found, kBytes, MPI_BYTE, MPI_STATUS_IGNORE));
        CHECK(memcmp(found, mine, sizeof mine) == 0, "round %d", round);
        OK(MPI_File_set_size(file, (MPI_Offset)size * kBytes / 2));
        MPI_Offset bytes;
        OK(MPI_File_get_size(file, &bytes));
        EXPECT_INT(bytes, (MPI_Offset)size * kBytes / 2);
        settle(file);
    }
    OK(MPI_Type_free(&column));
    OK(MPI_File_close(&file));
    OK(MPI_Finalize());
    return 0;
}
