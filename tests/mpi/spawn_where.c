// Relative paths in a spawn are relative to the root's working directory, not to its launcher's: the children's directory, wdir, command,
// path, hostfile.
#include <sys/stat.h>

#include "dynamic.h"

static char top[PATH_MAX];

/// Spawns `command` with one key of the info object (null: none). The child's working directory must be `directory`, relative to `top`.
static void spawn_in(const char* command, const char* key, const char* value, const char* directory, int root, int rank) {
    MPI_Info info;
    MPI_Comm child;
    OK(MPI_Info_create(&info));
    if (key) OK(MPI_Info_set(info, key, value));
    OK(MPI_Comm_spawn(command, MPI_ARGV_NULL, 1, info, root, MPI_COMM_WORLD, &child, MPI_ERRCODES_IGNORE));
    OK(MPI_Info_free(&info));
    char place[PATH_MAX] = "", wanted[PATH_MAX + 8];
    OK(MPI_Bcast(place, sizeof place, MPI_CHAR, 0, child));
    snprintf(wanted, sizeof wanted, "%s%s", top, directory);
    CHECK(rank != root || !strcmp(place, wanted), "%s=%s: the child is in %s, not in %s", key ? key : "-", value, place,
          wanted);
    OK(MPI_Comm_disconnect(&child));
}

int main(int argc, char** argv) {
    MPI_Comm parent;
    int rank, size;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    OK(MPI_Comm_get_parent(&parent));
    if (parent != MPI_COMM_NULL) {
        char place[PATH_MAX] = "";
        CHECK(getcwd(place, sizeof place), "no directory");
        OK(MPI_Bcast(place, sizeof place, MPI_CHAR, MPI_ROOT, parent));
        OK(MPI_Comm_disconnect(&parent));
        OK(MPI_Finalize());
        return 0;
    }
    if (!on_one_host()) {  // children on other hosts have other directories: no test
        OK(MPI_Finalize());
        return 0;
    }
    const int root = size - 1;
    if (rank == root) {
        char made[] = "/tmp/spawn_where.XXXXXX";
        CHECK(mkdtemp(made) && realpath(made, top) && !chdir(top), "mkdtemp");
        CHECK(!mkdir("sub", 0700) && !symlink(own_path(), "solver") && !symlink(own_path(), "sub/other"), "sub");
        FILE* file = fopen("hosts", "w");
        CHECK(file && fputs("localhost\n", file) >= 0 && !fclose(file), "hosts");
    }
    spawn_in(own_path(), NULL, "", "", root, rank);
    spawn_in("./solver", NULL, "", "", root, rank);
    spawn_in(own_path(), "wdir", "sub", "/sub", root, rank);
    spawn_in("./other", "wdir", "sub", "/sub", root, rank);
    spawn_in(own_path(), "wdir", ".", "", root, rank);
    spawn_in("other", "path", "/nowhere:sub", "", root, rank);
    spawn_in("./solver", "hostfile", "hosts", "", root, rank);
    spawn_in("./solver", "add-hostfile", "hosts", "", root, rank);
    if (rank == root) {
        const char* made[] = {"hosts", "sub/other", "solver", "sub", top};
        for (int i = 0; i < 5; i++) CHECK(!remove(made[i]), "%s", made[i]);
    }
    OK(MPI_Finalize());
    return 0;
}
