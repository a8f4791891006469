/* With STARLING_PLAN=learn, phases that recur must find their connections open. Without the plan no connection would be opened: no traffic
 * reaches the threshold (set in programs.txt), and the quota is smaller than the number of partners. */
#include <mpi-ext.h>

#include "check.h"
#include "counted.h"

enum { kPhases = 3, kCycles = 8, kMessages = 40 };

int main(int argc, char** argv) {
    int rank, size, provided;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    const Counted on_rings = count_from_now("messages_ring");
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int cycle = 0; cycle < kCycles; ++cycle) {
        for (int phase = 0; phase < kPhases; ++phase) {
            const int to = (rank + phase + 1) % size, from = (rank + size - phase - 1) % size;
            char name[] = "phase .";
            name[6] = (char)('a' + phase);
            OK(MPIX_Phase_begin(MPI_COMM_WORLD, name));
            for (int i = 0; i < kMessages; ++i) {
                int out = i + 1000 * cycle, in = -1;
                OK(MPI_Sendrecv(&out, 1, MPI_INT, to, phase, &in, 1, MPI_INT, from, phase, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
                EXPECT_INT(in, out);
            }
        }
    }
    const unsigned long long learned = counted_so_far(on_rings);
    CHECK(learned >= (unsigned long long)(kCycles - 1) * kPhases * kMessages / 2, "only %llu messages on rings", learned);
    OK(MPI_T_finalize());
    OK(MPI_Finalize());
    return 0;
}
