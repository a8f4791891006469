// Files that cannot be opened or that have no space: `faults WHAT FOLDER`. Every function returns an error of the class that the standard
// defines for the fault, with a sentence; a collective function returns it on all processes; the job continues.
#define _GNU_SOURCE
#include <fcntl.h>
#include <mpi.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "check.h"

enum { kBytes = 1 << 20, kRdwrCreate = MPI_MODE_RDWR | MPI_MODE_CREATE };

static int rank, size;
static const char* folder;
static char buffer[kBytes];

/// Expects that a call has failed with a class, and that its text contains `part`.
static void expect_failure(int line, int error, int class_wanted, const char* part) {
    int class_found = MPI_SUCCESS;
    OK(MPI_Error_class(error, &class_found));
    char text[MPI_MAX_ERROR_STRING];
    int length;
    OK(MPI_Error_string(error, text, &length));
    if (class_found != class_wanted) fail_at(__FILE__, line, "class", "%d instead of %d: %s", class_found, class_wanted, text);
    if (!strstr(text, part)) fail_at(__FILE__, line, "text", "no \"%s\" in: %s", part, text);
}
#define FAILS(call, class_wanted, part) expect_failure(__LINE__, call, class_wanted, part)

static const char* path_of(const char* name) {
    static char path[8192];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static int open_file(const char* path, int amode, MPI_File* file) {
    return MPI_File_open(MPI_COMM_WORLD, path, amode, MPI_INFO_NULL, file);
}

/// Expects that all processes fail to open the file with one class. Only one of them knows the reason; the others name its rank.
static void all_fail_to_open(int line, const char* path, int amode, int class_wanted) {
    MPI_File file = MPI_FILE_NULL;
    expect_failure(line, open_file(path, amode, &file), class_wanted, "");
    CHECK(file == MPI_FILE_NULL);
}
#define ALL_FAIL_TO_OPEN(path, amode, class_wanted) all_fail_to_open(__LINE__, path, amode, class_wanted)

static void rank_0_makes(int (*make)(const char*, mode_t), const char* name) {
    if (rank == 0) CHECK(make(path_of(name), 0600) == 0);
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

static int make_file(const char* path, mode_t mode) {
    const int descriptor = open(path, O_CREAT | O_RDWR, mode);
    return descriptor < 0 || close(descriptor) != 0;
}

static void names(void) {
    static char long_name[6000];
    memset(long_name, 'x', sizeof long_name - 1);
    ALL_FAIL_TO_OPEN(path_of("missing"), MPI_MODE_RDONLY, MPI_ERR_NO_SUCH_FILE);
    ALL_FAIL_TO_OPEN(path_of("missing/file"), kRdwrCreate, MPI_ERR_NO_SUCH_FILE);
    ALL_FAIL_TO_OPEN(path_of(long_name), kRdwrCreate, MPI_ERR_BAD_FILE);
    ALL_FAIL_TO_OPEN(path_of(long_name + 5600), kRdwrCreate, MPI_ERR_BAD_FILE);
    ALL_FAIL_TO_OPEN(folder, MPI_MODE_RDONLY, MPI_ERR_BAD_FILE);
    ALL_FAIL_TO_OPEN(folder, kRdwrCreate, MPI_ERR_BAD_FILE);
    ALL_FAIL_TO_OPEN("", kRdwrCreate, MPI_ERR_BAD_FILE);
    rank_0_makes(mkfifo, "fifo");
    ALL_FAIL_TO_OPEN(path_of("fifo"), MPI_MODE_RDONLY, MPI_ERR_BAD_FILE);
    ALL_FAIL_TO_OPEN(path_of("fifo"), MPI_MODE_WRONLY, MPI_ERR_BAD_FILE);
    rank_0_makes(make_file, "file");
    ALL_FAIL_TO_OPEN(path_of("file"), kRdwrCreate | MPI_MODE_EXCL, MPI_ERR_FILE_EXISTS);
    ALL_FAIL_TO_OPEN(path_of("file/x"), kRdwrCreate, MPI_ERR_BAD_FILE);
    FAILS(MPI_File_delete(path_of("missing"), MPI_INFO_NULL), MPI_ERR_NO_SUCH_FILE, "missing");
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0) CHECK(unlink(path_of("fifo")) == 0 && unlink(path_of("file")) == 0);
}

/// The processes may not use the files that they name. Root is not subject to permissions, so they change their user for a while.
static void permissions(void) {
    rank_0_makes(make_file, "secret");
    CHECK(seteuid(65534) == 0);
    MPI_File file = MPI_FILE_NULL;
    const int error = open_file(path_of("secret"), MPI_MODE_RDONLY, &file);
    CHECK(seteuid(0) == 0);
    FAILS(error, MPI_ERR_ACCESS, "");
    if (rank == 0) FAILS(error, MPI_ERR_ACCESS, "permissions");
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0) CHECK(unlink(path_of("secret")) == 0);
}

/// `folder` is on a mount without the right to write and has a file `data` of 10 bytes.
static void read_only(void) {
    ALL_FAIL_TO_OPEN(path_of("data"), MPI_MODE_RDWR, MPI_ERR_READ_ONLY);
    ALL_FAIL_TO_OPEN(path_of("new"), kRdwrCreate, MPI_ERR_READ_ONLY);
    MPI_File file;
    OK(open_file(path_of("data"), MPI_MODE_RDONLY, &file));
    MPI_Offset bytes;
    OK(MPI_File_get_size(file, &bytes));
    CHECK(bytes == 10);
    OK(MPI_File_sync(file));
    OK(MPI_File_close(&file));
    FAILS(MPI_File_delete(path_of("data"), MPI_INFO_NULL), MPI_ERR_READ_ONLY, "MPI_MODE_RDONLY");
}

/// Expects that no transfer beyond the space of the file system succeeds, and that the file can be used afterwards.
static void no_space(void) {
    MPI_File file;
    const MPI_Offset mine = (MPI_Offset)rank * kBytes;
    OK(open_file(path_of("full"), kRdwrCreate | MPI_MODE_DELETE_ON_CLOSE, &file));
    FAILS(MPI_File_write_at_all(file, mine, buffer, kBytes, MPI_BYTE, MPI_STATUS_IGNORE), MPI_ERR_NO_SPACE, "");
    OK(MPI_File_set_size(file, 0));
    FAILS(MPI_File_preallocate(file, 4 * kBytes), MPI_ERR_NO_SPACE, "");
    OK(MPI_File_set_size(file, 0));
    if (rank == size - 1)
        for (int turn = 0; turn < 2; ++turn) {
            const int error = MPI_File_write_at(file, turn * (MPI_Offset)kBytes, buffer, kBytes, MPI_BYTE, MPI_STATUS_IGNORE);
            if (turn == 1) FAILS(error, MPI_ERR_NO_SPACE, "free space");
        }
    OK(MPI_File_set_size(file, 0));
    OK(MPI_File_write_at_all(file, rank * 10, buffer, 10, MPI_BYTE, MPI_STATUS_IGNORE));
    MPI_Offset bytes;
    OK(MPI_File_get_size(file, &bytes));
    CHECK(bytes == size * 10);
    OK(MPI_File_close(&file));
}

/// `folder` has space for fewer bytes than the processes write. A network file system may report that when the file is synced or closed.
static void ends_with(int class_wanted, const char* part) {
    MPI_File file;
    OK(open_file(path_of("late"), kRdwrCreate | MPI_MODE_DELETE_ON_CLOSE, &file));
    const MPI_Offset mine = (MPI_Offset)rank * kBytes;
    int error = MPI_File_write_at_all(file, mine, buffer, kBytes, MPI_BYTE, MPI_STATUS_IGNORE);
    if (error == MPI_SUCCESS) error = MPI_File_sync(file);
    FAILS(error, class_wanted, "");
    char text[MPI_MAX_ERROR_STRING];
    int length, named;
    OK(MPI_Error_string(error, text, &length));
    named = strstr(text, part) != NULL;
    OK(MPI_Allreduce(MPI_IN_PLACE, &named, 1, MPI_INT, MPI_LOR, MPI_COMM_WORLD));
    CHECK(named, "no process has the reason: %s", text);
    const int closed = MPI_File_close(&file);
    if (closed != MPI_SUCCESS) FAILS(closed, class_wanted, "");
}
static void late_space(void) { ends_with(MPI_ERR_NO_SPACE, "free space"); }
static void late_quota(void) { ends_with(MPI_ERR_QUOTA, "quota"); }

/// The limit on file sizes would end the processes by SIGXFSZ.
static void size_limit(void) {
    const struct rlimit limit = {1000, RLIM_INFINITY};
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    MPI_File file;
    OK(open_file(path_of("limited"), kRdwrCreate | MPI_MODE_DELETE_ON_CLOSE, &file));
    FAILS(MPI_File_write_at(file, 990, buffer, 100, MPI_BYTE, MPI_STATUS_IGNORE), MPI_ERR_NO_SPACE, "ulimit -f");
    FAILS(MPI_File_write_at_all(file, 2000 + rank * 100, buffer, 100, MPI_BYTE, MPI_STATUS_IGNORE), MPI_ERR_NO_SPACE, "");
    FAILS(MPI_File_set_size(file, 1001), MPI_ERR_NO_SPACE, "");
    FAILS(MPI_File_preallocate(file, 1001), MPI_ERR_NO_SPACE, "");
    MPI_Request request;
    MPI_Status status;
    OK(MPI_File_iwrite_at(file, 5000, buffer, 10, MPI_BYTE, &request));
    FAILS(MPI_Wait(&request, &status), MPI_ERR_NO_SPACE, "ulimit -f");
    OK(MPI_File_write_at_all(file, rank * 10, buffer, 10, MPI_BYTE, MPI_STATUS_IGNORE));
    OK(MPI_File_close(&file));
}

/// One process has no free descriptor. After that the same file can be opened.
static void descriptors(void) {
    struct rlimit before, few;
    CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
    const int next = dup(0);
    CHECK(next >= 0 && close(next) == 0);
    few = before;
    few.rlim_cur = (rlim_t)next;
    for (int victim = 0; victim < size; ++victim) {
        if (rank == victim) CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
        MPI_File file = MPI_FILE_NULL;
        const int error = open_file(path_of("many"), kRdwrCreate, &file);
        CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
        FAILS(error, MPI_ERR_IO, rank == victim ? "ulimit -n" : "");
        CHECK(access(path_of("many"), F_OK) != 0, "the failed call has left a file");
    }
    rank_0_makes(make_file, "old");
    if (rank == size - 1) CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
    ALL_FAIL_TO_OPEN(path_of("old"), kRdwrCreate, MPI_ERR_IO);
    CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
    CHECK(access(path_of("old"), F_OK) == 0, "the failed call has removed a file that another program had created");
    MPI_File file;
    OK(open_file(path_of("many"), kRdwrCreate | MPI_MODE_DELETE_ON_CLOSE, &file));
    OK(MPI_File_close(&file));
    OK(open_file(path_of("old"), kRdwrCreate | MPI_MODE_DELETE_ON_CLOSE, &file));
    OK(MPI_File_close(&file));
}

/// The file's name disappears while the job uses the file.
static void removed(void) {
    MPI_File file;
    OK(open_file(path_of("removed"), kRdwrCreate | MPI_MODE_DELETE_ON_CLOSE, &file));
    if (rank == 0) CHECK(unlink(path_of("removed")) == 0);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    memset(buffer, rank, 1000);
    OK(MPI_File_write_at_all(file, rank * 1000, buffer, 1000, MPI_BYTE, MPI_STATUS_IGNORE));
    OK(MPI_File_sync(file));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_File_sync(file));
    OK(MPI_File_read_at_all(file, (rank + 1) % size * 1000, buffer, 1000, MPI_BYTE, MPI_STATUS_IGNORE));
    CHECK(buffer[0] == (rank + 1) % size && buffer[999] == buffer[0]);
    FAILS(MPI_File_close(&file), MPI_ERR_NO_SUCH_FILE, "");
}

static void ignore_signal(int number) { (void)number; }

/// Signals interrupt the processes all the time, and no call is restarted by the kernel.
static void signals(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = ignore_signal;
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    const struct itimerval storm = {{0, 500}, {0, 500}}, calm = {{0, 0}, {0, 0}};
    CHECK(setitimer(ITIMER_REAL, &storm, NULL) == 0);
    for (int turn = 0; turn < 6; ++turn) {
        MPI_File file;
        OK(open_file(path_of("signals"), kRdwrCreate | MPI_MODE_DELETE_ON_CLOSE, &file));
        OK(MPI_File_preallocate(file, (MPI_Offset)size * kBytes));
        fill_bytes(buffer, kBytes, (uint64_t)(turn + rank));
        OK(MPI_File_write_at_all(file, (MPI_Offset)rank * kBytes, buffer, kBytes, MPI_BYTE, MPI_STATUS_IGNORE));
        OK(MPI_File_sync(file));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        OK(MPI_File_sync(file));
        const int other = (rank + 1) % size;
        OK(MPI_File_read_at(file, (MPI_Offset)other * kBytes, buffer, kBytes, MPI_BYTE, MPI_STATUS_IGNORE));
        CHECK(first_wrong_byte(buffer, kBytes, (uint64_t)(turn + other)) < 0);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        OK(MPI_File_close(&file));
    }
    CHECK(setitimer(ITIMER_REAL, &calm, NULL) == 0);
}

/// Relative names lead to different files, because the processes have different working directories.
static void working_directories(void) {
    char mine[100];
    snprintf(mine, sizeof mine, "folder-%d", rank);
    CHECK(mkdir(path_of(mine), 0700) == 0 && chdir(path_of(mine)) == 0);
    MPI_File file = MPI_FILE_NULL;
    const int error = open_file("relative", kRdwrCreate, &file);
    int class_found;
    OK(MPI_Error_class(error, &class_found));
    CHECK(size == 1 || class_found == MPI_ERR_NO_SUCH_FILE || class_found == MPI_ERR_NOT_SAME, "%d", class_found);
    if (size == 1) OK(MPI_File_close(&file));
    CHECK(make_file("relative", 0600) == 0);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (size > 1) ALL_FAIL_TO_OPEN("relative", MPI_MODE_RDWR, MPI_ERR_NOT_SAME);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    CHECK(unlink("relative") == 0 && chdir("/") == 0 && rmdir(path_of(mine)) == 0);
}

int main(int argc, char** argv) {
    static const struct {
        const char* name;
        void (*run)(void);
    } kTests[] = {{"names", names},
                  {"permissions", permissions},
                  {"read_only", read_only},
                  {"no_space", no_space},
                  {"late_space", late_space},
                  {"late_quota", late_quota},
                  {"size_limit", size_limit},
                  {"descriptors", descriptors},
                  {"removed", removed},
                  {"signals", signals},
                  {"working_directories", working_directories}};
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    CHECK(argc == 3, "arguments: WHAT FOLDER");
    folder = argv[2];
    int found = 0;
    for (size_t i = 0; i < sizeof kTests / sizeof kTests[0]; ++i)
        if (strcmp(argv[1], kTests[i].name) == 0) kTests[i].run(), ++found;
    CHECK(found == 1, "there is no test %s", argv[1]);
    OK(MPI_Finalize());
    return 0;
}
