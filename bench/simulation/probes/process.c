// Measures the processor time, in seconds, that a job's process needs until the end of MPI_Init, and that its launcher needs until then.
// Rank 0 prints JSON.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static double processor_time(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/// Returns the processor time of another process in seconds; the kernel gives it as the first number in schedstat, in nanoseconds.
static double processor_time_of(pid_t pid) {
    char path[64];
    unsigned long long ns = 0;
    snprintf(path, sizeof path, "/proc/%d/schedstat", (int)pid);
    FILE* file = fopen(path, "r");
    if (!file || fscanf(file, "%llu", &ns) != 1) return -1;
    fclose(file);
    return (double)ns * 1e-9;
}

static int ascending(const void* a, const void* b) {
    const double x = *(const double*)a, y = *(const double*)b;
    return x < y ? -1 : x > y;
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    const double mine = processor_time();
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    double* all = malloc(sizeof *all * (size_t)size);
    MPI_Gather(&mine, 1, MPI_DOUBLE, all, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        qsort(all, (size_t)size, sizeof *all, ascending);
        printf("{\"ranks\": %d, \"init\": %.3g, \"launcher\": %.6f}\n", size, all[size / 2], processor_time_of(getppid()));
    }
    free(all);
    MPI_Finalize();
    return 0;
}
