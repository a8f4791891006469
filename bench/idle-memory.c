/* Memory, descriptors and threads of a rank that has only called MPI_Init, and after an all-to-all of 4
 * KiB. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/bench.h"

enum { kPss, kPrivate, kRss, kDescriptors, kThreads, kValues };
static const char* const kNames[kValues] = {"pss-kB", "private-kB", "rss-kB", "descriptors", "threads"};

/* The number after a word that begins a line of a file; the sum if there are several. */
static double number_after(const char* path, const char* word) {
    char line[256];
    double sum = 0;
    FILE* file = fopen(path, "r");
    if (!file) return -1;
    while (fgets(line, sizeof line, file)) {
        if (strncmp(line, word, strlen(word)) == 0) sum += atof(line + strlen(word));
    }
    fclose(file);
    return sum;
}

static double entries(const char* path) {
    double count = 0;
    DIR* directory = opendir(path);
    if (!directory) return -1;
    for (struct dirent* entry; (entry = readdir(directory));) count += entry->d_name[0] != '.';
    closedir(directory);
    return count - 1; /* the descriptor of this very listing */
}

static void look(double* values) {
    values[kPss] = number_after("/proc/self/smaps_rollup", "Pss:");
    values[kPrivate] = number_after("/proc/self/smaps_rollup", "Private_Dirty:");
    values[kRss] = number_after("/proc/self/smaps_rollup", "Rss:");
    values[kDescriptors] = entries("/proc/self/fd");
    values[kThreads] = number_after("/proc/self/status", "Threads:");
}

static void report_all(Report* report, const char* when, int rank, int size) {
    double own[kValues];
    double* all = malloc(kValues * (size_t)size * sizeof *all);
    double* one = malloc((size_t)size * sizeof *one);
    MPI_Barrier(MPI_COMM_WORLD);
    usleep(300000);
    look(own);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Gather(own, kValues, MPI_DOUBLE, all, kValues, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    for (int k = 0; k < kValues && rank == 0; ++k) {
        char name[40];
        snprintf(name, sizeof name, "%s%s", when, kNames[k]);
        for (int i = 0; i < size; ++i) one[i] = all[kValues * i + k];
        bench_row(report, name, size, bench_stats(one, size));
    }
    free(all);
    free(one);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    Options options =
        bench_options(argc, argv, "memory of an idle rank (medians over ranks)", bench_defaults());
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    Report* report = bench_report("idle-memory", "kB or number", &options);
    report_all(report, "", rank, size);
    size_t block = 4096;
    char* out = bench_buffer(block * (size_t)size);
    char* in = bench_buffer(block * (size_t)size);
    MPI_Alltoall(out, (int)block, MPI_BYTE, in, (int)block, MPI_BYTE, MPI_COMM_WORLD);
    report_all(report, "after-alltoall-", rank, size);
    char ranks[16];
    snprintf(ranks, sizeof ranks, "%d", size);
    if (rank == 0) bench_print(report, ranks);
    free(out);
    free(in);
    MPI_Finalize();
    return 0;
}
