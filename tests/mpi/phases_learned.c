/* With STARLING_PLAN=learn phases that come again find their connections: on demand there would be none, since nothing ever
 * reaches the threshold (programs.txt sets it), and few places have to do for many partners. Reads the library's counters. */
#include <mpi-ext.h>

#include "check.h"

enum { kPhases = 3, kCycles = 8, kMessages = 40 };

static MPI_T_pvar_session session;

/* Counts from now on. */
static MPI_T_pvar_handle count_from_now(const char* wanted) {
    int count = 0;
    MPI_T_pvar_handle handle = MPI_T_PVAR_HANDLE_NULL;
    OK(MPI_T_pvar_get_num(&count));
    for (int i = 0; i < count && handle == MPI_T_PVAR_HANDLE_NULL; ++i) {
        char name[200];
        int length = sizeof name, verbosity, class, bind, readonly, continuous, atomic;
        MPI_Datatype type;
        MPI_T_enum enumeration;
        OK(MPI_T_pvar_get_info(i, name, &length, &verbosity, &class, &type, &enumeration, NULL, NULL, &bind, &readonly,
                               &continuous, &atomic));
        if (!strstr(name, wanted)) continue;
        OK(MPI_T_pvar_handle_alloc(session, i, NULL, &handle, &length));
        if (!continuous) OK(MPI_T_pvar_start(session, handle));
    }
    CHECK(handle != MPI_T_PVAR_HANDLE_NULL, "no counter %s", wanted);
    return handle;
}

static unsigned long long value_of(MPI_T_pvar_handle handle) {
    unsigned long long value = 0;
    OK(MPI_T_pvar_read(session, handle, &value));
    return value;
}

int main(int argc, char** argv) {
    int rank, size, provided;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    OK(MPI_T_pvar_session_create(&session));
    const MPI_T_pvar_handle on_rings = count_from_now("messages_ring");
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
    const unsigned long long learned = value_of(on_rings);
    CHECK(learned >= (unsigned long long)(kCycles - 1) * kPhases * kMessages / 2, "only %llu messages on rings", learned);
    OK(MPI_T_pvar_session_free(&session));
    OK(MPI_T_finalize());
    OK(MPI_Finalize());
    return 0;
}
