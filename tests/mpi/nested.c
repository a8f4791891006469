// A program that a rank starts inherits its environment but is not a rank. It is a job of one process, which may spawn, even if the process
// between it and the rank has ended. The rank continues, and may already have finalized.
#include <sys/wait.h>
#include <unistd.h>

#include "dynamic.h"

static int be_nested(const char* how, int done) {
    int size, sum = 0, one = 1;
    OK(MPI_Init(NULL, NULL));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    EXPECT_INT(size, 1);
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    EXPECT_INT(sum, 1);
    MPI_Comm inter;
    OK(MPI_Comm_get_parent(&inter));
    CHECK(inter == MPI_COMM_NULL, "a nested program has parents");
    if (strcmp(how, "spawns") == 0) {
        inter = spawn_self("child", 1, MPI_COMM_WORLD);
        OK(MPI_Barrier(inter));
        OK(MPI_Comm_disconnect(&inter));
    }
    OK(MPI_Finalize());
    CHECK(write(done, "x", 1) == 1, "the pipe");
    return 0;
}

/// Runs a nested program as a child of this process, or with `orphaned` as a child of a process that ends before the program begins.
static void run(const char* how, int orphaned) {
    int ends[2];
    char byte, descriptor[16];
    CHECK(pipe(ends) == 0, "pipe");
    snprintf(descriptor, sizeof descriptor, "%d", ends[1]);
    const pid_t pid = fork();
    if (pid == 0) {
        const pid_t between = getpid();
        if (orphaned && fork() != 0) _exit(0);
        while (orphaned && getppid() == between) usleep(1000);
        execl(own_path(), own_path(), "nested", how, descriptor, (char*)NULL);
        _exit(127);
    }
    close(ends[1]);
    CHECK(waitpid(pid, NULL, 0) == pid, "waitpid");
    CHECK(read(ends[0], &byte, 1) == 1, "a nested program that %s, %s, has failed", how, orphaned ? "orphaned" : "a child");
    close(ends[0]);
}

int main(int argc, char** argv) {
    int size, sum = 0, one = 1;
    if (argc == 4 && strcmp(argv[1], "nested") == 0) return be_nested(argv[2], atoi(argv[3]));
    OK(MPI_Init(&argc, &argv));
    if (was_met_as_child()) return 0;
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    run("is alone", 0);
    run("spawns", 0);
    run("is alone", 1);
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    EXPECT_INT(sum, size);
    OK(MPI_Finalize());
    run("is alone", 0);
    return 0;
}
