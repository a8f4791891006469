// After a disconnect, children may outlive their parents' job and vice versa. Each process writes a line to a file when it has finished: in
// the test's directory, or under the prefix TEST_FILE.
#include <fcntl.h>
#include <sys/stat.h>

#include "dynamic.h"

static void mark(const char* file, const char* suffix) {
    char name[PATH_MAX + 16];
    snprintf(name, sizeof name, "%s.%s", file, suffix);
    int fd = open(name, O_CREAT | O_WRONLY, 0600);
    CHECK(fd >= 0, "%s", name);
    close(fd);
}

static int there(const char* file, const char* suffix) {
    char name[PATH_MAX + 16];
    struct stat status;
    snprintf(name, sizeof name, "%s.%s", file, suffix);
    return stat(name, &status) == 0;
}

// The child that outlives its parents: computes with its siblings until the parents have seen that it does, and then while their job ends.
static void long_child(const char* file) {
    MPI_Comm parent;
    int sum = 0, size;
    OK(MPI_Comm_get_parent(&parent));
    OK(MPI_Comm_disconnect(&parent));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    for (int i = 0; i < 20; i += sum == size) {
        const int seen = there(file, "seen");
        usleep(20000);
        OK(MPI_Allreduce(&seen, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
        CHECK(sum <= size);
    }
    OK(MPI_Finalize());
    mark(file, "outlived");
}

int main(int argc, char** argv) {
    MPI_Comm parent, inter;
    int rank;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_get_parent(&parent));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    if (parent != MPI_COMM_NULL) {
        if (strcmp(argv[1], "short") == 0) {
            OK(MPI_Comm_disconnect(&parent));
            OK(MPI_Finalize());
            return 0;
        }
        long_child(argv[1]);
        return 0;
    }
    // The children end long before their parents.
    inter = spawn_self("short", 2, MPI_COMM_WORLD);
    OK(MPI_Comm_disconnect(&inter));
    usleep(150000);
    int value = rank, sum, size;
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    OK(MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    EXPECT_INT(sum, size * (size - 1) / 2);
    // The parents' job ends while the children compute.
    char file[PATH_MAX];
    const char* given = getenv("TEST_FILE");
    snprintf(file, sizeof file, "%s", given ? given : "outlive");
    inter = spawn_self(file, 2, MPI_COMM_WORLD);
    OK(MPI_Comm_disconnect(&inter));
    CHECK(!there(file, "outlived"), "the children have not waited, or there is an old file %s", file);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0) mark(file, "seen");
    OK(MPI_Finalize());
    return 0;
}
