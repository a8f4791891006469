// Processes that no other process may access, like programs with execute but no read permission. They exchange memory as file descriptors,
// so windows of all kinds must work, created repeatedly and with children.
#include <sys/prctl.h>

#include "dynamic.h"
#include "reached.h"

int main(int argc, char** argv) {
    MPI_Comm parent;
    CHECK(prctl(PR_SET_DUMPABLE, 0) == 0, "PR_SET_DUMPABLE");
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_get_parent(&parent));
    if (parent == MPI_COMM_NULL) {
        reach_by_windows(MPI_COMM_WORLD, 20);
        reach_by_messages(MPI_COMM_WORLD);
        reach_family(spawn_self("child", 2, MPI_COMM_WORLD));
    } else {
        reach_family(MPI_COMM_NULL);
    }
    OK(MPI_Finalize());
    return 0;
}
