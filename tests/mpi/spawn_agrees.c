// A member cannot take part in a spawn because it has no descriptor left: the call must fail on all members, and children already started
// must end. With descriptors again, a spawn succeeds.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>

#include "dynamic.h"

static struct rlimit usual;

/// Sets RLIMIT_NOFILE so that no further descriptor can be opened, or to its usual value.
static void allow_descriptors(int allowed) {
    struct rlimit none = usual;
    none.rlim_cur = 3;
    CHECK(!setrlimit(RLIMIT_NOFILE, allowed ? &usual : &none), "setrlimit");
}

static void expect_failure(int code, MPI_Comm made) {
    CHECK(code != MPI_SUCCESS && made == MPI_COMM_NULL, "the call succeeded although a member cannot take part");
}

/// Runs as the child: holds a lock while it lives, and waits for its parents, or to be killed.
static int be_child(MPI_Comm parent, const char* lock, int is_meant_to_end) {
    const int fd = open(lock, O_RDWR);
    CHECK(fd >= 0 && !flock(fd, LOCK_SH), "%s", lock);
    while (is_meant_to_end) pause();
    OK(MPI_Barrier(parent));
    OK(MPI_Comm_disconnect(&parent));
    OK(MPI_Finalize());
    return 0;
}

static void spawn_well(char* lock) {
    char* arguments[] = {lock, NULL};
    MPI_Comm made;
    OK(MPI_Comm_spawn(own_path(), arguments, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &made, MPI_ERRCODES_IGNORE));
    OK(MPI_Barrier(made));
    OK(MPI_Comm_disconnect(&made));
}

int main(int argc, char** argv) {
    int rank, size, poor;
    char lock[64] = "";
    MPI_Comm parent, made;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_get_parent(&parent));
    if (parent != MPI_COMM_NULL && argc > 1) return be_child(parent, argv[1], argc > 2);
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    if (!on_one_host()) {  // children on other hosts have other files: no test
        OK(MPI_Finalize());
        return 0;
    }
    CHECK(!getrlimit(RLIMIT_NOFILE, &usual), "getrlimit");
    if (rank == 0) {
        strcpy(lock, "/tmp/spawn_agrees.XXXXXX");
        const int fd = mkstemp(lock);
        CHECK(fd >= 0 && !close(fd), "mkstemp");
    }
    OK(MPI_Bcast(lock, sizeof lock, MPI_CHAR, 0, MPI_COMM_WORLD));
#ifdef __SANITIZE_ADDRESS__
    // UBSan checks through a pipe whether it may read an object's type: it needs descriptors for each type that it sees for the first time.
    spawn_well(lock);
    for (int i = 0; i < 300; i++)
        OK(MPI_Sendrecv(&i, 1, MPI_INT, (rank + 1) % size, 0, &poor, 1, MPI_INT, (rank + size - 1) % size, 0, MPI_COMM_WORLD,
                        MPI_STATUS_IGNORE));
#endif
    char word[] = "end", *arguments[] = {lock, word, NULL};
    for (poor = 1; poor < size; poor++) {
        made = MPI_COMM_WORLD;
        if (rank == poor) allow_descriptors(0);
        const int code = MPI_Comm_spawn(own_path(), arguments, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &made, MPI_ERRCODES_IGNORE);
        if (rank == poor) allow_descriptors(1);
        expect_failure(code, made);
        if (rank == 0) {
            const int fd = open(lock, O_RDWR);
            CHECK(fd >= 0 && !flock(fd, LOCK_EX) && !close(fd), "could not wait for the children's end by their lock");
        }
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    spawn_well(lock);
    if (rank == 0) CHECK(!unlink(lock), "%s", lock);
    OK(MPI_Finalize());
    return 0;
}
