// Tests MPI_Comm_spawn_multiple: arguments, counts and info that differ between commands; application numbers; working directory; arguments
// with blanks and empty ones; several spawned jobs at once.
#include "dynamic.h"

static void child(int argc, char** argv) {
    MPI_Comm parent;
    int rank, size, flag;
    int* appnum;
    OK(MPI_Comm_get_parent(&parent));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    EXPECT_INT(size, 6);
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &appnum, &flag));
    EXPECT_INT(flag, 1);
    int wanted = rank < 1 ? 0 : rank < 4 ? 1 : 2;
    EXPECT_INT(*appnum, wanted);
    char directory[PATH_MAX];
    CHECK(getcwd(directory, sizeof directory) != NULL);
    if (wanted == 0) {
        EXPECT_INT(argc, 4);
        CHECK(strcmp(argv[1], "first") == 0 && strcmp(argv[2], "two words") == 0 && strcmp(argv[3], "$HOME '\"") == 0,
              "%s|%s|%s", argv[1], argv[2], argv[3]);
    } else if (wanted == 1) {
        EXPECT_INT(argc, 1);
        CHECK(strcmp(directory, "/usr") == 0, "wdir: %s", directory);
    } else {
        EXPECT_INT(argc, 2);
        CHECK(strcmp(argv[1], "third") == 0, "%s", argv[1]);
    }
    int sum = *appnum;
    OK(MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    EXPECT_INT(sum, 0 + 3 * 1 + 2 * 2);
    OK(MPI_Send(appnum, 1, MPI_INT, 0, rank, parent));
    OK(MPI_Comm_disconnect(&parent));
}

int main(int argc, char** argv) {
    MPI_Comm parent, inter;
    int rank, appnum, codes[6];
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_get_parent(&parent));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    if (parent != MPI_COMM_NULL) {
        child(argc, argv);
        OK(MPI_Finalize());
        return 0;
    }
    int size;
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s", own_path());
    char* commands[] = {path, path, path};
    char* first[] = {(char*)"first", (char*)"two words", (char*)"$HOME '\"", NULL};
    char* third[] = {(char*)"third", NULL};
    char* none[] = {NULL};
    char** arguments[] = {first, none, third};
    int counts[] = {1, 3, 2};
    MPI_Info infos[3] = {MPI_INFO_NULL, MPI_INFO_NULL, MPI_INFO_NULL};
    OK(MPI_Info_create(&infos[1]));
    OK(MPI_Info_set(infos[1], "wdir", "/usr"));
    int root = size - 1;
    memset(codes, -1, sizeof codes);
    if (rank == root)
        OK(MPI_Comm_spawn_multiple(3, commands, arguments, counts, infos, root, MPI_COMM_WORLD, &inter, codes));
    else  // only the root's arguments are significant
        OK(MPI_Comm_spawn_multiple(0, NULL, NULL, NULL, NULL, root, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE));
    if (rank == root)
        for (int i = 0; i < 6; i++) EXPECT_INT(codes[i], MPI_SUCCESS);
    OK(MPI_Comm_remote_size(inter, &size));
    EXPECT_INT(size, 6);
    for (int i = 0; i < 6 && rank == 0; i++) {
        OK(MPI_Recv(&appnum, 1, MPI_INT, i, i, inter, MPI_STATUS_IGNORE));
        EXPECT_INT(appnum, i < 1 ? 0 : i < 4 ? 1 : 2);
    }
    OK(MPI_Info_free(&infos[1]));
    OK(MPI_Comm_disconnect(&inter));
    OK(MPI_Finalize());
    return 0;
}
