// Variables stay private to a PE whose process had several threads before shmem_init (docs/openshmem.md): their owner carries out what other
// PEs ask for.
#pragma once

#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void* sleep_on(void* unused) {
    for (;;) pause();
    return unused;
}

/// Call before shmem_init. Starts a thread if TEST_THREAD is set. Returns whether the process has several: a sanitizer may have one of its
/// own, too.
static int keep_variables_private(void) {
    pthread_t thread;
    if (getenv("TEST_THREAD") && pthread_create(&thread, NULL, sleep_on, NULL) == 0) pthread_detach(thread);
    struct stat tasks;
    return stat("/proc/self/task", &tasks) == 0 && tasks.st_nlink > 2 + 1;
}
