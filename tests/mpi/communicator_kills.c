// One rank dies at a random moment while communicators are created from communicators and groups, and the job continues
// (--enable-recovery). The surviving ranks get no error other than from this death, and none hangs, although each learns of the death at
// another moment. Usage: communicator_kills SEED
#include <mpi-ext.h>

#include "death.h"

static int rank, size, doomed;
static uint64_t state;
static MPI_Comm side;
static MPI_Group all, halves[2];

static int make(int what, MPI_Comm* made) {
    const int half = rank < size / 2, dims[] = {size}, periods[] = {1};
    MPI_Request request;
    int error;
    *made = MPI_COMM_NULL;
    switch (what) {
        case 0:
            return MPI_Comm_dup(MPI_COMM_WORLD, made);
        case 1:
            error = MPI_Comm_idup(MPI_COMM_WORLD, made, &request);
            return error ? error : MPI_Wait(&request, MPI_STATUS_IGNORE);
        case 2:
            return MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, made);
        case 3:
            return MPI_Comm_create_group(MPI_COMM_WORLD, all, 7, made);
        case 4:
            return MPI_Comm_create_from_group(all, "kills", MPI_INFO_NULL, MPI_ERRORS_RETURN, made);
        case 5:
            return MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, made);
        case 6:
            return MPI_Intercomm_create(side, 0, MPI_COMM_WORLD, half ? size / 2 : 0, 3, made);
        default:
            return MPI_Intercomm_create_from_groups(halves[half], 0, halves[!half], 0, "kills", MPI_INFO_NULL,
                                                    MPI_ERRORS_RETURN, made);
    }
}

/// Creates and uses one communicator. Returns false if a process has died.
static int live(int what) {
    MPI_Comm made;
    const int code = make(what, &made);
    if (code) {
        char text[MPI_MAX_ERROR_STRING];
        int length;
        MPI_Error_string(code, text, &length);
        CHECK(class_of(code) == MPIX_ERR_PROC_FAILED && made == MPI_COMM_NULL, "creation %d: %s", what, text);
        return 0;
    }
    if (made != MPI_COMM_NULL) OK(MPI_Comm_free(&made));
    return 1;
}

int main(int argc, char** argv) {
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    CHECK(argc == 2 && size > 2, "usage: mpiexec --enable-recovery -n N communicator_kills SEED");
    test_seed = strtoull(argv[1], NULL, 10);
    state = test_seed;
    doomed = (int)(next_random(&state) % (uint64_t)size);
    const int half = size / 2;
    int ranges[2][3] = {{half, size - 1, 1}, {0, half - 1, 1}};
    OK(MPI_Comm_group(MPI_COMM_WORLD, &all));
    for (int i = 0; i < 2; ++i) OK(MPI_Group_range_incl(all, 1, &ranges[i], &halves[i]));
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank < half, 0, &side));
    OK(MPI_Comm_set_errhandler(side, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    // Creates one inter-communicator, before any rank has stopped because of an error: a group's leader cannot know that the other group's
    // leader has stopped.
    if (rank == doomed) die_within(&state, test_seed % 2 ? 500 : 30000);
    live(6 + (int)(test_seed / 2 % 2));
    for (int i = 0; live(i % 6); ++i) continue;
    if (rank == (doomed == 0)) printf("all went on without rank %d\n", doomed);
    OK(MPI_Finalize());
    return 0;
}
