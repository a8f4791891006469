// Members of a communicator call MPI_Finalize, and the others shrink it: the result is without the former. The arguments choose which ranks
// finalize, as a mask of bits, and whether all agree on the communicator before. With a third argument other than -1 a rank has died, too.
// With a fourth one, the ranks that have finalized do not exit before a file of this name exists, which the others create.
#include <mpi-ext.h>

#include "death.h"
#include "finalized.h"

int main(int argc, char** argv) {
    int rank, size, left, wanted = 0, flag = 1;
    MPI_Comm comm, smaller;
    CHECK(argc >= 3);
    const int leaving = atoi(argv[1]), agrees = atoi(argv[2]), dying = argc > 3 ? atoi(argv[3]) : -1;
    const char* const file = argc > 4 ? argv[4] : NULL;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    OK(MPI_Comm_rank(comm, &rank));
    OK(MPI_Comm_size(comm, &size));
    if (agrees) OK(MPIX_Comm_agree(comm, &flag));
    if (dying >= 0) kill_when_all_are_ready(comm, dying);
    if (leaving >> rank & 1) {
        OK(MPI_Comm_free(&comm));
        return finalize_and_stay(file);
    }
    for (int i = 0; i < size; i++) wanted += !(leaving >> i & 1) && i != dying;
    for (int round = 0; round < 3; round++) {
        OK(MPIX_Comm_shrink(comm, &smaller));
        OK(MPI_Comm_size(smaller, &left));
        EXPECT_INT(left, wanted);
        OK(MPI_Barrier(smaller));
        OK(MPI_Comm_free(&smaller));
    }
    flag = rank ? 6 : 3;
    EXPECT_INT(class_of(MPIX_Comm_agree(comm, &flag)), MPIX_ERR_PROC_FAILED);
    expect_failed(comm, size - wanted);
    OK(MPI_Comm_free(&comm));
    let_finalized_exit(file);
    OK(MPI_Finalize());
    puts("shrunk without those that have finalized");
    return 0;
}
