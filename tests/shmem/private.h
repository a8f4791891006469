// Variables stay private to a PE that has several threads before it is one (docs/openshmem.md): their owner carries out what others ask for.
#pragma once

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#ifndef __SANITIZE_THREAD__
static void* sleep_on(void* unused) {
    for (;;) pause();
    return unused;
}
#endif

/// Before shmem_init. With TEST_THREAD set there is a thread, as a sanitizer's; whether there is one.
static int keep_variables_private(void) {
#ifdef __SANITIZE_THREAD__
    return 1;
#else
    pthread_t thread;
    return getenv("TEST_THREAD") && pthread_create(&thread, NULL, sleep_on, NULL) == 0;
#endif
}
