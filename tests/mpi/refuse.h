// Refuses a process resources: its n-th mapping, its n-th descriptor of each kind, its n-th allocation. The functions below replace libc's in
// the program and in the library. Include it in one file of a program, after `#define _GNU_SOURCE`.
#pragma once

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum kind { kMmap, kMprotect, kMemfd, kFtruncate, kOpen, kSocket, kSendmsg, kRecvmsg, kThread, kMalloc, kCopy, kKinds };
static const char* const kNames[kKinds] = {"mmap",    "mprotect", "memfd_create",   "ftruncate", "open",          "socket",
                                           "sendmsg", "recvmsg",  "pthread_create", "malloc",    "attribute copy"};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { kCanRefuse = 0 };  // with a sanitizer, which has its own allocator and intercepts these calls
__attribute__((unused)) static volatile int refused_kind, refused_in, refused_for_ever;
__attribute__((unused)) static int is_refused(int kind, int error) { return kind == error; }
#else
enum { kCanRefuse = 1 };
static volatile int refused_kind, refused_in;  // kind of call, and number of the next such call to fail; 0: none
static volatile int refused_for_ever;          // whether all later calls of this kind fail too

static int is_refused(int kind, int error) {
    if (refused_in == 0 || refused_kind != kind || --refused_in > 0) return 0;
    if (refused_for_ever) refused_in = 1;
    errno = error;
    return 1;
}

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
ssize_t sendmsg(int fd, const struct msghdr* message, int flags) {
    return is_refused(kSendmsg, ETOOMANYREFS) ? -1 : syscall(SYS_sendmsg, fd, message, flags);
}
ssize_t recvmsg(int fd, struct msghdr* message, int flags) {
    return is_refused(kRecvmsg, ENOMEM) ? -1 : syscall(SYS_recvmsg, fd, message, flags);
}
int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*), void* of) {
    static int (*libcs)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
    if (!libcs) *(void**)&libcs = dlsym(RTLD_NEXT, "pthread_create");
    return is_refused(kThread, EAGAIN) ? EAGAIN : libcs(thread, attributes, run, of);
}

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void*, size_t),
    *__libc_memalign(size_t, size_t);
void* malloc(size_t bytes) { return is_refused(kMalloc, ENOMEM) ? NULL : __libc_malloc(bytes); }
void* calloc(size_t count, size_t bytes) { return is_refused(kMalloc, ENOMEM) ? NULL : __libc_calloc(count, bytes); }
void* realloc(void* old, size_t bytes) { return is_refused(kMalloc, ENOMEM) ? NULL : __libc_realloc(old, bytes); }
void* aligned_alloc(size_t alignment, size_t bytes) {
    return is_refused(kMalloc, ENOMEM) ? NULL : __libc_memalign(alignment, bytes);
}
int posix_memalign(void** made, size_t alignment, size_t bytes) {
    if (is_refused(kMalloc, ENOMEM)) return ENOMEM;
    *made = __libc_memalign(alignment, bytes);
    return *made ? 0 : ENOMEM;
}
#endif
