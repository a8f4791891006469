// If the root has no memory for its part of a spawn, an accept or a connect, all members must return an error; none may hang.
#include <errno.h>
#include <sys/resource.h>

#include "dynamic.h"

/// Limits the address space to its current size and uses up the allocator's free memory.
static void take_all_memory(void) {
    long pages = 0;
    FILE* file = fopen("/proc/self/statm", "r");
    CHECK(file && fscanf(file, "%ld", &pages) == 1, "/proc/self/statm");
    fclose(file);
    struct rlimit limit;
    getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = (rlim_t)pages * 4096;
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0, "RLIMIT_AS");
}

static void give_memory(void) {
    struct rlimit limit;
    getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_AS, &limit);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static void meet_without_memory(int rank, int size) { (void)rank, (void)size; }  // left out: a sanitizer's allocator cannot be replaced
#else
static volatile int refused;  // countdown to the allocation that fails; 0: none
extern void* __libc_malloc(size_t);

/// Replaces malloc in the program and in the library; the allocation at which the countdown ends fails.
void* malloc(size_t bytes) {
    if (refused == 0 || --refused > 0) return __libc_malloc(bytes);
    errno = ENOMEM;
    return NULL;
}

/// The first half of the ranks accepts, the second connects, until both are connected. On one side the root's first try fails for lack of
/// memory: all members of that side must return the error, and the other side must not hang.
static void meet_without_memory(int rank, int size) {
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm side, inter;
    const int accepting = rank < (size + 1) / 2;
    int place;
    OK(MPI_Comm_split(MPI_COMM_WORLD, accepting, rank, &side));
    OK(MPI_Comm_rank(side, &place));
    OK(MPI_Comm_set_errhandler(side, MPI_ERRORS_RETURN));
    if (rank == 0) OK(MPI_Open_port(MPI_INFO_NULL, port));
    OK(MPI_Bcast(port, sizeof port, MPI_CHAR, 0, MPI_COMM_WORLD));
    for (int which = 1; which <= 8; which++) {
        for (int victim = 0; victim < 2; victim++) {
            if (place == 0 && victim == accepting) refused = which;
            int error, without_memory = 0;
            do {
                error = accepting ? MPI_Comm_accept(port, MPI_INFO_NULL, 0, side, &inter)
                                  : MPI_Comm_connect(port, MPI_INFO_NULL, 0, side, &inter);
                int class = MPI_SUCCESS;
                if (error) OK(MPI_Error_class(error, &class));
                CHECK(class == MPI_SUCCESS || class == MPI_ERR_PORT || class == MPI_ERR_NO_MEM, "an error of class %d", class);
                without_memory += class == MPI_ERR_NO_MEM;
            } while (error);
            // A later allocation may belong to an incoming packet. The packet is then delivered again, so no call fails.
            const int absorbed = which > 4 && without_memory == 0;
            CHECK(absorbed || without_memory == (victim == accepting), "refusal %d: %d times without memory", which, without_memory);
            OK(MPI_Comm_disconnect(&inter));
            OK(MPI_Barrier(MPI_COMM_WORLD));
        }
    }
    if (rank == 0) OK(MPI_Close_port(port));
    OK(MPI_Comm_free(&side));
}
#endif

int main(int argc, char** argv) {
    MPI_Comm inter;
    int rank, size;
    OK(MPI_Init(&argc, &argv));
    if (was_met_as_child()) return 0;
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (size > 1) meet_without_memory(rank, size);
    enum { kLong = 48 << 20 };
    char* word = malloc(kLong);
    memset(word, 'x', kLong);
    word[kLong - 1] = 0;
    char* arguments[] = {word, NULL};
    take_all_memory();

    // A job cannot have this many processes: the call must be refused whatever memory there is.
    EXPECT_ERROR(
        MPI_Comm_spawn("true", MPI_ARGV_NULL, 2000000000, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE),
        MPI_ERR_SPAWN);
    // Not enough memory for a copy of the arguments.
    EXPECT_ERROR(MPI_Comm_spawn(own_path(), arguments, 1, MPI_INFO_NULL, size - 1, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE),
                 MPI_ERR_NO_MEM);
    give_memory();
    // The arguments fit in memory but not in a request.
    EXPECT_ERROR(MPI_Comm_spawn(own_path(), arguments, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE),
                 MPI_ERR_SPAWN);
    free(word);
    inter = spawn_self("child", 2, MPI_COMM_WORLD);
    OK(MPI_Barrier(inter));
    OK(MPI_Comm_disconnect(&inter));
    OK(MPI_Finalize());
    return 0;
}
