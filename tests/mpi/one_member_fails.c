// One member of a collective call that makes something is refused what it asks the system for: its first mapping, its second and so on,
// then its first descriptor of each kind, its second. All members succeed, or none does, and nobody waits for ever; afterwards the same call
// succeeds on all.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "dynamic.h"

enum kind { kMmap, kMprotect, kMemfd, kFtruncate, kOpen, kSocket, kKinds };
static const char* const kNames[kKinds] = {"mmap", "mprotect", "memfd_create", "ftruncate", "open", "socket"};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { kCanRefuse = 0 };  // a sanitizer has its own allocator, and looks at all of these
static volatile int refused_kind, refused_in;
#else
enum { kCanRefuse = 1 };
static volatile int refused_kind, refused_in;  // which request of that kind from now on is refused, 0: none

static int is_refused(int kind, int error) {
    if (refused_in == 0 || refused_kind != kind || --refused_in > 0) return 0;
    errno = error;
    return 1;
}

// These stand before libc's, for the library as well.
void* mmap(void* at, size_t bytes, int protection, int flags, int file, off_t offset) {
    if (is_refused(kMmap, ENOMEM)) return MAP_FAILED;
    return (void*)syscall(SYS_mmap, at, bytes, protection, flags, file, offset);
}
int mprotect(void* at, size_t bytes, int protection) {
    return is_refused(kMprotect, ENOMEM) ? -1 : (int)syscall(SYS_mprotect, at, bytes, protection);
}
int memfd_create(const char* name, unsigned flags) {
    return is_refused(kMemfd, EMFILE) ? -1 : (int)syscall(SYS_memfd_create, name, flags);
}
int ftruncate(int file, off_t bytes) { return is_refused(kFtruncate, ENOSPC) ? -1 : (int)syscall(SYS_ftruncate, file, bytes); }
int open(const char* path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    const int mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, int) : 0;
    va_end(arguments);
    return is_refused(kOpen, EMFILE) ? -1 : (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}
int socket(int domain, int type, int protocol) {
    return is_refused(kSocket, EMFILE) ? -1 : (int)syscall(SYS_socket, domain, type, protocol);
}
#endif

enum what { kWinCreate, kWinAllocate, kWinShared, kWinDynamic, kDup, kSplit, kCreateGroup, kWhats };
static const char* const kCalls[kWhats] = {"MPI_Win_create",         "MPI_Win_allocate", "MPI_Win_allocate_shared",
                                           "MPI_Win_create_dynamic", "MPI_Comm_dup",     "MPI_Comm_split",
                                           "MPI_Comm_create_group"};

static MPI_Comm home;  // returns errors
static long memory[8];

/// One call; what it makes is freed by all or kept by none.
static int make(int what, MPI_Win* window, MPI_Comm* made) {
    void* base;
    MPI_Group group;
    int error;
    *window = MPI_WIN_NULL, *made = MPI_COMM_NULL;
    switch (what) {
        case kWinCreate:
            return MPI_Win_create(memory, sizeof memory, 1, MPI_INFO_NULL, home, window);
        case kWinAllocate:
            return MPI_Win_allocate(5000, 1, MPI_INFO_NULL, home, &base, window);
        case kWinShared:
            return MPI_Win_allocate_shared(5000, 1, MPI_INFO_NULL, home, &base, window);
        case kWinDynamic:
            return MPI_Win_create_dynamic(MPI_INFO_NULL, home, window);
        case kDup:
            return MPI_Comm_dup(home, made);
        case kSplit:
            return MPI_Comm_split(home, 0, 0, made);
        default:
            break;
    }
    error = MPI_Comm_group(home, &group);
    if (error) return error;
    error = MPI_Comm_create_group(home, group, 7, made);
    MPI_Group_free(&group);
    return error;
}

/// Whether the victim's request was refused at all.
static int try_once(int what, int kind, int which, int rank, int victim) {
    MPI_Win window;
    MPI_Comm made;
    if (rank == victim) refused_kind = kind, refused_in = which;
    const int error = make(what, &window, &made);
    int was_refused = refused_in == 0;
    refused_in = 0;
    int failed = error != MPI_SUCCESS, counts[2], size;
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    const int mine[2] = {failed, rank == victim && was_refused};
    OK(MPI_Allreduce(mine, counts, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK(counts[0] == 0 || counts[0] == size, "%s, %s number %d of rank %d refused: %d of %d failed; here: error %d",
          kCalls[what], kNames[kind], which, victim, counts[0], size, error);
    if (window != MPI_WIN_NULL) OK(MPI_Win_free(&window));
    if (made != MPI_COMM_NULL) OK(MPI_Comm_free(&made));
    return counts[1];
}

int main(int argc, char** argv) {
    int rank, size;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &home));
    OK(MPI_Comm_set_errhandler(home, MPI_ERRORS_RETURN));
    for (int what = 0; kCanRefuse && what < kWhats; what++) {
        for (int kind = 0; kind < kKinds; kind++)
            for (int victim = 0; victim < size; victim++)
                for (int which = 1; try_once(what, kind, which, rank, victim); which++) CHECK(which < 1000, "%s", kCalls[what]);
        MPI_Win window;
        MPI_Comm made;
        OK(make(what, &window, &made));
        if (window != MPI_WIN_NULL) OK(MPI_Win_free(&window));
        if (made != MPI_COMM_NULL) OK(MPI_Comm_free(&made));
    }
    OK(MPI_Comm_free(&home));
    OK(MPI_Finalize());
    return 0;
}
