// A spawn that cannot start its command must return error codes and not abort, and the next spawn must work.
#include "dynamic.h"

int main(int argc, char** argv) {
    MPI_Comm inter;
    int rank, size, codes[4];
    OK(MPI_Init(&argc, &argv));
    if (was_met_as_child()) return 0;
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    const char* const bad[] = {"/nowhere/is/this-program", "no-such-program-in-any-path", "/etc/passwd", "/usr"};
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < 4; i++) codes[i] = MPI_SUCCESS;
        EXPECT_ERROR(MPI_Comm_spawn(bad[round], MPI_ARGV_NULL, round + 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, codes),
                     MPI_ERR_SPAWN);
        for (int i = 0; i <= round; i++) {
            int class;
            OK(MPI_Error_class(codes[i], &class));
            CHECK(class != MPI_SUCCESS, "%s: child %d has no error code", bad[round], i);
        }
        inter = spawn_self("child", 2, MPI_COMM_WORLD);
        OK(MPI_Barrier(inter));
        OK(MPI_Comm_disconnect(&inter));
    }
    // One of two commands does not exist: the call must fail and set the error code of this command.
    char path[PATH_MAX], nowhere[] = "/nowhere/at/all";
    snprintf(path, sizeof path, "%s", own_path());
    char* commands[] = {path, nowhere};
    int counts[] = {1, 1};
    MPI_Info infos[] = {MPI_INFO_NULL, MPI_INFO_NULL};
    codes[0] = codes[1] = MPI_SUCCESS;
    EXPECT_ERROR(MPI_Comm_spawn_multiple(2, commands, MPI_ARGVS_NULL, counts, infos, 0, MPI_COMM_WORLD, &inter, codes),
                 MPI_ERR_SPAWN);
    CHECK(codes[1] != MPI_SUCCESS, "the bad command's error code");
    // Invalid arguments.
    int code = MPI_Comm_spawn(path, MPI_ARGV_NULL, 0, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, codes);
    CHECK(code != MPI_SUCCESS, "maxprocs 0");
    EXPECT_ERROR(MPI_Comm_spawn(path, MPI_ARGV_NULL, 1, MPI_INFO_NULL, size, MPI_COMM_WORLD, &inter, codes), MPI_ERR_ROOT);
    MPI_Info info;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "wdir", "/nowhere/at/all"));
    EXPECT_ERROR(MPI_Comm_spawn(path, MPI_ARGV_NULL, 1, info, 0, MPI_COMM_WORLD, &inter, codes), MPI_ERR_SPAWN);
    OK(MPI_Info_free(&info));
    inter = spawn_self("child", 1, MPI_COMM_WORLD);
    OK(MPI_Barrier(inter));
    OK(MPI_Comm_disconnect(&inter));
    OK(MPI_Finalize());
    return 0;
}
