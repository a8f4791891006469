/* A job that uses a little of everything, to measure the cost per process when there are many. It runs MPI_Init, an allreduce, a ring, an
 * exchange of each process with five others chosen at random. Plain MPI; rank 0 prints one line of JSON with times (of the slowest
 * process), memory and connections per process (median and maximum).
 *
 *   scale-job [messages to each of the five [bytes of each]] */
#include <dirent.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { kPeers = 5 };

static int rank, size;

static double milliseconds(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static double now(void) { return milliseconds(CLOCK_MONOTONIC); }

/* Returns the kilobytes that are private to this process according to /proc; shared memory does not count. */
static double private_kilobytes(void) {
    char line[256];
    double sum = 0, value;
    FILE* file = fopen("/proc/self/smaps_rollup", "r");
    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, "Private_%*[^:]: %lf", &value) == 1) sum += value;
    }
    if (file) fclose(file);
    return sum;
}

/* Returns 1 if the list of the host's established TCP connections contains this inode. */
static int is_connection(unsigned long inode, const unsigned long* established, int count) {
    for (int i = 0; i < count; ++i) {
        if (established[i] == inode) return 1;
    }
    return 0;
}

static int read_established(unsigned long* inodes, int most) {
    char line[512];
    unsigned state;
    int count = 0;
    unsigned long inode;
    FILE* file = fopen("/proc/self/net/tcp", "r");
    while (file && count < most && fgets(line, sizeof line, file)) {
        if (sscanf(line, " %*d: %*s %*s %x %*s %*s %*s %*s %*s %lu", &state, &inode) == 2 && state == 1) {
            inodes[count++] = inode;
        }
    }
    if (file) fclose(file);
    return count;
}

/* Counts this process's established TCP connections to other processes of the job, the daemon included. */
static double connections(void) {
    static unsigned long established[1 << 16];
    int count = read_established(established, 1 << 16), mine = 0;
    DIR* directory = opendir("/proc/self/fd");
    for (struct dirent* entry; directory && (entry = readdir(directory));) {
        char path[300], target[64] = {0};
        unsigned long inode;
        snprintf(path, sizeof path, "/proc/self/fd/%s", entry->d_name);
        if (readlink(path, target, sizeof target - 1) > 0 && sscanf(target, "socket:[%lu]", &inode) == 1) {
            mine += is_connection(inode, established, count);
        }
    }
    if (directory) closedir(directory);
    return mine;
}

static void allreduce(void) {
    int one = 1, sum = 0;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (sum != size) MPI_Abort(MPI_COMM_WORLD, 3);
}

/* Passes one token around the ring. */
static void ring(void) {
    int token = 0, left = (rank + size - 1) % size, right = (rank + 1) % size;
    if (rank > 0) MPI_Recv(&token, 1, MPI_INT, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    ++token;
    MPI_Send(&token, 1, MPI_INT, right, 1, MPI_COMM_WORLD);
    if (rank > 0) return;
    MPI_Recv(&token, 1, MPI_INT, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (token != size) MPI_Abort(MPI_COMM_WORLD, 4);
}

static unsigned next_random(unsigned* state) {
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* Computes a permutation that is the same on all processes: rank r sends to to[r]. */
static void permute(int* to, unsigned seed) {
    for (int i = 0; i < size; ++i) to[i] = i;
    for (int i = size - 1; i > 0; --i) {
        int j = (int)(next_random(&seed) % (unsigned)(i + 1)), kept = to[i];
        to[i] = to[j];
        to[j] = kept;
    }
}

/* Sends `messages` to each of five processes, receives as many from five, and checks the data. */
static void exchange(int messages, int bytes) {
    int* to = malloc((size_t)size * sizeof *to);
    char *out = malloc((size_t)bytes), *in[kPeers];
    int target[kPeers], source[kPeers];
    for (int k = 0; k < kPeers; ++k) {
        in[k] = malloc((size_t)bytes);
        permute(to, 7u + (unsigned)k);
        target[k] = to[rank];
        for (int i = 0; i < size; ++i) {
            if (to[i] == rank) source[k] = i;
        }
    }
    memset(out, rank % 251, (size_t)bytes);
    for (int m = 0; m < messages; ++m) {
        MPI_Request requests[2 * kPeers];
        for (int k = 0; k < kPeers; ++k) {
            MPI_Irecv(in[k], bytes, MPI_BYTE, source[k], 10 + k, MPI_COMM_WORLD, &requests[k]);
            MPI_Isend(out, bytes, MPI_BYTE, target[k], 10 + k, MPI_COMM_WORLD, &requests[kPeers + k]);
        }
        MPI_Waitall(2 * kPeers, requests, MPI_STATUSES_IGNORE);
        for (int k = 0; k < kPeers; ++k) {
            if (in[k][0] != (char)(source[k] % 251) || in[k][bytes - 1] != (char)(source[k] % 251)) {
                MPI_Abort(MPI_COMM_WORLD, 5);
            }
        }
    }
    for (int k = 0; k < kPeers; ++k) free(in[k]);
    free(out);
    free(to);
}

static int compare_doubles(const void* a, const void* b) {
    double left = *(const double*)a, right = *(const double*)b;
    return (left > right) - (left < right);
}

/* Prints the median and maximum over the job, on rank 0. */
static void report(const char* name, double value) {
    double* all = rank == 0 ? malloc((size_t)size * sizeof *all) : NULL;
    MPI_Gather(&value, 1, MPI_DOUBLE, all, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    if (rank != 0) return;
    qsort(all, (size_t)size, sizeof *all, compare_doubles);
    printf(", \"%s\": [%.3f, %.3f]", name, all[size / 2], all[size - 1]);
    free(all);
}

int main(int argc, char** argv) {
    double started = now(), worked = milliseconds(CLOCK_PROCESS_CPUTIME_ID);
    MPI_Init(&argc, &argv);
    double initialised = now(), work = milliseconds(CLOCK_PROCESS_CPUTIME_ID) - worked;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int messages = argc > 1 ? atoi(argv[1]) : 20, bytes = argc > 2 ? atoi(argv[2]) : 1024;
    double memory_at_start = private_kilobytes(), connections_at_start = connections();
    double t0 = now();
    allreduce();
    double t1 = now();
    allreduce();
    double t2 = now();
    ring();
    allreduce();
    double t3 = now();
    exchange(messages, bytes);
    double t4 = now();
    double memory = private_kilobytes(), open = connections();
    allreduce();
    if (rank == 0) printf("{\"ranks\": %d", size);
    report("init_ms", initialised - started);
    report("init_cpu_ms", work);
    report("first_allreduce_ms", t1 - t0);
    report("allreduce_ms", t2 - t1);
    report("ring_ms", t3 - t2);
    report("exchange_ms", t4 - t3);
    report("memory_start_kb", memory_at_start);
    report("memory_kb", memory);
    report("connections_start", connections_at_start);
    report("connections", open);
    if (rank == 0) printf("}\n");
    MPI_Finalize();
    return 0;
}
