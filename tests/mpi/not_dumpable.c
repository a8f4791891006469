// Processes that nobody may look into, as programs are that may be executed but not read: memory is handed over as descriptors, so windows
// of all kinds work, and so they do when they are made again and again.
#include <sys/prctl.h>

#include "check.h"

int main(int argc, char** argv) {
    enum { kBytes = 4096 };
    int rank, size;
    CHECK(prctl(PR_SET_DUMPABLE, 0) == 0, "PR_SET_DUMPABLE");
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    const int next = (rank + 1) % size, before = (rank + size - 1) % size;
    const int kinds = on_one_host() ? 3 : 2;
    for (int turn = 0; turn < 20; turn++) {
        for (int kind = 0; kind < kinds; kind++) {
            char *memory = NULL, word = (char)(rank + turn + 1);
            MPI_Win window;
            if (kind == 0) {
                OK(MPI_Alloc_mem(kBytes, MPI_INFO_NULL, &memory));
                OK(MPI_Win_create(memory, kBytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window));
            } else if (kind == 1) {
                OK(MPI_Win_allocate(kBytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window));
            } else {
                OK(MPI_Win_allocate_shared(kBytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window));
            }
            OK(MPI_Win_fence(0, window));
            OK(MPI_Put(&word, 1, MPI_CHAR, next, kBytes - 1, 1, MPI_CHAR, window));
            OK(MPI_Win_fence(0, window));
            EXPECT_INT(memory[kBytes - 1], before + turn + 1);
            OK(MPI_Win_free(&window));
            if (kind == 0) OK(MPI_Free_mem(memory));
        }
    }
    OK(MPI_Finalize());
    return 0;
}
