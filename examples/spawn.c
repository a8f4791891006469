/* Parent and child in one file: the parent spawns copies of itself, sends each a number and adds up their results.
 *
 *     mpiexec -n 1 ./spawn 4        or just        ./spawn 4 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static void child(MPI_Comm parent) {
    int rank, number, square;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Scatter(NULL, 0, MPI_INT, &number, 1, MPI_INT, 0, parent);
    square = number * number;
    printf("child %d: %d * %d = %d\n", rank, number, number, square);
    fflush(stdout);
    MPI_Reduce(&square, NULL, 1, MPI_INT, MPI_SUM, 0, parent);
    MPI_Comm_disconnect(&parent);
}

static int parent(const char* program, int children) {
    MPI_Comm family;
    double before = MPI_Wtime();
    MPI_Comm_spawn(program, MPI_ARGV_NULL, children, MPI_INFO_NULL, 0, MPI_COMM_SELF, &family, MPI_ERRCODES_IGNORE);
    printf("parent: %d children in %.1f ms\n", children, (MPI_Wtime() - before) * 1e3);

    int* numbers = malloc((size_t)children * sizeof *numbers);
    int sum = 0, expected = 0;
    for (int i = 0; i < children; ++i) {
        numbers[i] = i + 1;
        expected += (i + 1) * (i + 1);
    }
    /* In the inter-communicator the parent is the root and the children are the remote group. */
    MPI_Scatter(numbers, 1, MPI_INT, NULL, 0, MPI_INT, MPI_ROOT, family);
    MPI_Reduce(NULL, &sum, 1, MPI_INT, MPI_SUM, MPI_ROOT, family);
    MPI_Comm_disconnect(&family);
    free(numbers);
    printf("parent: the squares add up to %d\n", sum);
    return sum == expected ? 0 : 1;
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm up;
    int code = 0;
    MPI_Comm_get_parent(&up);
    if (up == MPI_COMM_NULL) {
        int children = argc > 1 ? atoi(argv[1]) : 2;
        code = parent(argv[0], children > 0 ? children : 1);
    } else {
        child(up);
    }
    MPI_Finalize();
    return code;
}
