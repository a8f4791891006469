// Heat in a square plate by Jacobi's method. Rows are distributed over the PEs, which put their outermost rows into their neighbors' memory
// with a signal that holds the number of the step. Each PE then solves the whole problem serially and compares its rows.
//     oshrun -n 4 heat [size] [steps]
#include <math.h>
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void step(const double* from, double* to, int rows, int n) {
    for (int i = 1; i <= rows; i++)
        for (int j = 1; j < n - 1; j++)
            to[i * n + j] = 0.25 * (from[(i - 1) * n + j] + from[(i + 1) * n + j] + from[i * n + j - 1] + from[i * n + j + 1]);
}

// The plate's upper edge is hot.
static void begin(double* plate, int rows, int n, int is_top) {
    memset(plate, 0, sizeof(double) * (size_t)(rows + 2) * (size_t)n);
    if (is_top)
        for (int j = 0; j < n; j++) plate[j] = 100.0;
}

static double alone(double* result, int n, int steps) {
    const size_t bytes = sizeof(double) * (size_t)(n + 2) * (size_t)n;
    double *a = malloc(bytes), *b = malloc(bytes), sum = 0;
    begin(a, n, n, 1);
    begin(b, n, n, 1);
    for (int s = 0; s < steps; s++) {
        step(a, b, n, n);
        double* c = a;
        a = b, b = c;
    }
    for (int i = 0; i < n * n; i++) sum += a[n + i];
    memcpy(result, a + n, sizeof(double) * (size_t)n * (size_t)n);
    free(a);
    free(b);
    return sum / n / n;
}

int main(int argc, char** argv) {
    shmem_init();
    const int me = shmem_my_pe(), pes = shmem_n_pes();
    const int n = argc > 1 ? atoi(argv[1]) : 128, steps = argc > 2 ? atoi(argv[2]) : 200;
    const int most = (n + pes - 1) / pes, first = me * most < n ? me * most : n;
    const int rows = first + most < n ? most : n - first;
    const int used = (n + most - 1) / most;  // number of PEs that have rows
    const size_t bytes = sizeof(double) * (size_t)(most + 2) * (size_t)n;
    double* plates[2] = {shmem_malloc(bytes), shmem_malloc(bytes)};
    uint64_t* signals = shmem_calloc(2, sizeof *signals);  // last step received from above, from below
    int* wrong = shmem_calloc(2, sizeof *wrong);
    for (int i = 0; i < 2; i++) begin(plates[i], most, n, me == 0);
    shmem_barrier_all();
    double* now = plates[0];
    for (int s = 0; s < steps && rows > 0; s++) {
        double* next = plates[(s + 1) % 2];
        step(now, next, rows, n);
        // A neighbor that is one step behind still reads the rows of this step, so they are put into its other array.
        const uint64_t done = (uint64_t)s + 1;
        double *below = next + (size_t)(most + 1) * (size_t)n,
               *last = next + (size_t)rows * (size_t)n;  // all PEs above the last have `most` rows
        if (me > 0) shmem_double_put_signal(below, next + n, (size_t)n, &signals[1], done, SHMEM_SIGNAL_SET, me - 1);
        if (me + 1 < used) shmem_double_put_signal(next, last, (size_t)n, &signals[0], done, SHMEM_SIGNAL_SET, me + 1);
        if (me > 0) shmem_signal_wait_until(&signals[0], SHMEM_CMP_GE, done);
        if (me + 1 < used) shmem_signal_wait_until(&signals[1], SHMEM_CMP_GE, done);
        now = next;
    }
    double* reference = malloc(sizeof(double) * (size_t)n * (size_t)n);
    const double mean = alone(reference, n, steps);
    for (int i = 0; i < rows * n; i++) wrong[0] += now[n + i] != reference[first * n + i];
    free(reference);
    shmem_int_sum_reduce(SHMEM_TEAM_WORLD, &wrong[1], &wrong[0], 1);
    const int all_wrong = wrong[1];
    if (me == 0)
        printf("%d x %d, %d steps on %d PEs: mean %f, %s\n", n, n, steps, pes, mean,
               all_wrong ? "WRONG" : "as in the serial run");
    shmem_finalize();
    return all_wrong != 0;
}
