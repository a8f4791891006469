/* Like phases_learned, but the program marks no phases: the library detects them from the collective call that ends each step. The partners
 * change every fourth step, and recur. */
#include "check.h"
#include "counted.h"

enum { kPhases = 3, kSteps = 4, kCycles = 10, kMessages = 20 };

int main(int argc, char** argv) {
    int rank, size, provided;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    const Counted on_rings = count_from_now("messages_ring");
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int step = 0; step < kCycles * kPhases * kSteps; ++step) {
        const int away = step / kSteps % kPhases + 1;
        for (int i = 0; i < kMessages; ++i) {
            int out = i + 1000 * step, in = -1;
            OK(MPI_Sendrecv(&out, 1, MPI_INT, (rank + away) % size, away, &in, 1, MPI_INT, (rank + size - away) % size, away,
                            MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            EXPECT_INT(in, out);
        }
        int sum = 0;
        OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
        EXPECT_INT(sum, size * (size - 1) / 2);
    }
    const unsigned long long learned = counted_so_far(on_rings);
    CHECK(learned >= (unsigned long long)kCycles * kPhases * kSteps * kMessages / 3, "only %llu messages on rings", learned);
    OK(MPI_T_finalize());
    OK(MPI_Finalize());
    return 0;
}
