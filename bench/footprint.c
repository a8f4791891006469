/* Resources of an idle process, over the processes: memory, descriptors (and how many of them are sockets), mappings shared with other
 * processes, and threads. Measured after MPI_Init, after a message to each of two neighbors, and after an all-to-all of 4 KiB. Descriptors,
 * sockets and mappings that increase with the number of partners are connections, however a library makes them. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/bench.h"

enum { kPss, kPrivate, kRss, kDescriptors, kSockets, kSharedMappings, kThreads, kValues };
static const char* const kNames[kValues] = {"pss-kB",  "private-kB",      "rss-kB", "descriptors",
                                            "sockets", "shared-mappings", "threads"};

/* Returns the number after `word` at the beginning of a line of a file. */
static double number_after(const char* path, const char* word) {
    char line[256];
    double number = 0;
    FILE* file = fopen(path, "r");
    if (!file) return -1;
    while (fgets(line, sizeof line, file)) {
        if (strncmp(line, word, strlen(word)) == 0) number = atof(line + strlen(word));
    }
    fclose(file);
    return number;
}

/* Counts writable mappings that other processes may share: "rw-s" in the second column. */
static double shared_mappings(void) {
    char line[4400], access[8];
    double count = 0;
    FILE* file = fopen("/proc/self/maps", "r");
    if (!file) return -1;
    while (fgets(line, sizeof line, file)) {
        count += sscanf(line, "%*s %7s", access) == 1 && access[1] == 'w' && access[3] == 's';
    }
    fclose(file);
    return count;
}

static void look_at_descriptors(double* values) {
    char target[64];
    DIR* directory = opendir("/proc/self/fd");
    if (!directory) return;
    for (struct dirent* entry; (entry = readdir(directory));) {
        if (entry->d_name[0] == '.' || atoi(entry->d_name) == dirfd(directory)) continue;
        ++values[kDescriptors];
        ssize_t length = readlinkat(dirfd(directory), entry->d_name, target, sizeof target - 1);
        target[length < 0 ? 0 : length] = '\0';
        values[kSockets] += strncmp(target, "socket:", 7) == 0;
    }
    closedir(directory);
}

static void look(double* values) {
    values[kPss] = number_after("/proc/self/smaps_rollup", "Pss:");
    values[kPrivate] = number_after("/proc/self/smaps_rollup", "Private_Dirty:");
    values[kRss] = number_after("/proc/self/smaps_rollup", "Rss:");
    values[kSharedMappings] = shared_mappings();
    values[kThreads] = number_after("/proc/self/status", "Threads:");
    look_at_descriptors(values);
}

static void report_all(Report* report, const char* when, int size) {
    double own[kValues] = {0};
    MPI_Barrier(MPI_COMM_WORLD);
    usleep(300000);
    look(own);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int k = 0; k < kValues; ++k) {
        char name[40];
        snprintf(name, sizeof name, "%s%s", when, kNames[k]);
        Stats stats = bench_over_processes(MPI_COMM_WORLD, own[k]);
        bench_row(report, name, size, stats);
    }
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    Options options = bench_options(argc, argv, "resources of an idle process (medians over processes)", bench_defaults());
    int rank, size, word = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int next = (rank + 1) % size, last = (rank + size - 1) % size;
    Report* report = bench_report("footprint", "kB or number", &options);
    report_all(report, "", size);
    MPI_Sendrecv(&rank, 1, MPI_INT, next, 0, &word, 1, MPI_INT, last, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    bench_require(word == last, "a neighbour's message is wrong");
    report_all(report, "after-ring-", size);
    size_t block = 4096;
    char* out = bench_buffer(block * (size_t)size);
    char* in = bench_buffer(block * (size_t)size);
    MPI_Alltoall(out, (int)block, MPI_BYTE, in, (int)block, MPI_BYTE, MPI_COMM_WORLD);
    report_all(report, "after-alltoall-", size);
    bench_print_world(report);
    free(out);
    free(in);
    MPI_Finalize();
    return 0;
}
