// System calls of the functions on files: how often they are made, and that a slow one does not stop other threads. This program stands
// between the library and the calls that it counts.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "files.h"

static int rank, size;
static atomic_int stat_calls, sync_calls;

/// Returns whether the descriptor is that of a file of this test.
static int is_test_file(int descriptor) {
    char link[40], name[4096] = "";
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    return readlink(link, name, sizeof name - 1) > 0 && strstr(name, "starling-tests-file-");
}

int fstat(int descriptor, struct stat* status) {
    stat_calls += is_test_file(descriptor);
    return (int)syscall(SYS_fstat, descriptor, status);
}
int fdatasync(int descriptor) {
    ++sync_calls;
    return (int)syscall(SYS_fdatasync, descriptor);
}

/// Returns the sum of all processes' counts, and sets them to 0.
static int sum_of(atomic_int* calls) {
    int mine = atomic_exchange(calls, 0), sum;
    OK(MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    return sum;
}

/// Returns the number of hosts.
static int host_count(void) {
    MPI_Comm here;
    int first, hosts;
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here));
    OK(MPI_Comm_rank(here, &first));
    first = first == 0;
    OK(MPI_Allreduce(&first, &hosts, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    OK(MPI_Comm_free(&here));
    return hosts;
}

/// One process of each host stores what all there have written, or each process on FUSE. A collective transfer asks nothing about the file.
static void count_calls(void) {
    enum { kBytes = 1000 };
    const int hosts = host_count();
    char data[kBytes];
    memset(data, 'a' + rank, sizeof data);
    MPI_File file = new_file(MPI_MODE_RDWR, MPI_INFO_NULL);
    EXPECT_INT(sum_of(&stat_calls) >= size, 1);  // opening the file looks at it, so the calls are counted
    for (int turn = 0; turn < 3; ++turn) {
        OK(MPI_File_write_at_all(file, rank * kBytes, data, kBytes, MPI_BYTE, MPI_STATUS_IGNORE));
        OK(MPI_File_sync(file));
        const int syncs = sum_of(&sync_calls);
        CHECK(syncs == hosts || (getenv("TEST_FOLDER") && syncs == size), "%d syncs on %d hosts", syncs, hosts);
    }
    EXPECT_INT(sum_of(&stat_calls), 0);
    OK(MPI_File_close(&file));
}

static char hints[300];

/// Writes the file of hints, for which the other thread waits.
static void* write_hints(void* unused) {
    usleep(20000);
    // Needs the library's lock.
    int flag;
    OK(MPI_Iprobe(MPI_ANY_SOURCE, 77, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE));
    FILE* const file = fopen(hints, "w");
    CHECK(file && fputs("cb_nodes 7\n", file) >= 0 && fclose(file) == 0);
    return unused;
}

/// A file of hints that takes long to read, here a FIFO, stops one thread only.
static void slow_hints(void) {
    char name[256], value[20];
    new_file_name(name);
    snprintf(hints, sizeof hints, "/tmp/starling-tests-hints-%d", (int)getpid());
    CHECK(mkfifo(hints, 0600) == 0 && setenv("ROMIO_HINTS", hints, 1) == 0);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, write_hints, NULL) == 0);
    MPI_File file;
    OK(MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    CHECK(pthread_join(thread, NULL) == 0 && unlink(hints) == 0 && unsetenv("ROMIO_HINTS") == 0);
    MPI_Info info;
    int given;
    OK(MPI_File_get_info(file, &info));
    OK(MPI_Info_get(info, "cb_nodes", 19, value, &given));
    // The hints ask for 7 processes, and the file has one.
    CHECK(given && strcmp(value, "1") == 0, "cb_nodes is %s", value);
    OK(MPI_Info_free(&info));
    OK(MPI_File_close(&file));
}

int main(int argc, char** argv) {
    int level;
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level));
    CHECK(level == MPI_THREAD_MULTIPLE);
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    count_calls();
    if (rank == 0) slow_hints();
    OK(MPI_Finalize());
    return 0;
}
