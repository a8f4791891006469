// The first thread of each process ends by pthread_exit(), and another one uses MPI: messages of all lengths, windows, spawned children, and
// processes without mpiexec. /proc/<pid>/fd is then empty, and the kernel knows the process's memory under its other threads' ids only. The
// argument says when the first thread ends: before MPI_Init, or after windows exist ("late").
#include <pthread.h>

#include "dynamic.h"
#include "reached.h"

static pthread_t first;
static char path[PATH_MAX], *way;

static void initialize(void) {
    int provided;
    OK(MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided));
    EXPECT_INT(provided, MPI_THREAD_MULTIPLE);
}

static void* use_mpi(void* late) {
    MPI_Comm parent, children;
    char* arguments[] = {way, NULL};
    CHECK(pthread_join(first, NULL) == 0, "pthread_join");
    if (!late) initialize();
    OK(MPI_Comm_get_parent(&parent));
    if (parent == MPI_COMM_NULL) {
        reach_by_messages(MPI_COMM_WORLD);
        reach_by_windows(MPI_COMM_WORLD, 3);
        OK(MPI_Comm_spawn(path, arguments, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE));
        reach_family(children);
    } else {
        reach_family(MPI_COMM_NULL);
    }
    OK(MPI_Finalize());
    exit(0);
}

int main(int argc, char** argv) {
    pthread_t other;
    CHECK(argc > 1, "early or late?");
    way = argv[1];
    snprintf(path, sizeof path, "%s", own_path());  // /proc/self/exe leads nowhere without the first thread
    first = pthread_self();
    const int late = !strcmp(way, "late");
    if (late) {
        initialize();
        reach_by_windows(MPI_COMM_WORLD, 1);
    }
    CHECK(pthread_create(&other, NULL, use_mpi, late ? path : NULL) == 0, "pthread_create");
    pthread_exit(NULL);
}
