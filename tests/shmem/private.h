// If a process has several threads before shmem_init, its static variables stay private (docs/openshmem.md): their owner carries out the
// accesses of other PEs.
#pragma once

#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void* sleep_on(void* unused) {
    for (;;) pause();
    return unused;
}

/// Starts a thread if TEST_THREAD is set; call it before shmem_init. Returns whether the process has several threads: a sanitizer may have
/// started one too.
static int keep_variables_private(void) {
    pthread_t thread;
    if (getenv("TEST_THREAD") && pthread_create(&thread, NULL, sleep_on, NULL) == 0) pthread_detach(thread);
    struct stat tasks;
    return stat("/proc/self/task", &tasks) == 0 && tasks.st_nlink > 2 + 1;
}
