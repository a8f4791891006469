// In a job that survives deaths each rank asks the scheduler for short time slices, so that it learns of a death soon on a busy core. In
// other jobs it does not. `slices MICROSECONDS`: the slice that is expected; 0: the default. Threads of the program have the default.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "check.h"

struct attributes {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
};

static struct attributes attributes_of_this_thread(void) {
    struct attributes found = {0};
    CHECK(syscall(SYS_sched_getattr, 0, &found, sizeof found, 0) == 0, "sched_getattr");
    return found;
}

static void* read_in_thread(void* out) {
    *(struct attributes*)out = attributes_of_this_thread();
    return NULL;
}

int main(int argc, char** argv) {
    const struct attributes before = attributes_of_this_thread();
    struct attributes in_thread;
    pthread_t thread;
    OK(MPI_Init(&argc, &argv));
    CHECK(argc == 2, "usage: slices MICROSECONDS");
    // Linux before 6.12 reports no slice. The library requests nothing under another policy or with a niceness below 0.
    if (before.runtime == 0 || before.policy != SCHED_OTHER || before.nice < 0) {
        printf("the kernel or the policy has no slices to request\n");
        OK(MPI_Finalize());
        return 77;
    }
    const uint64_t wanted = (uint64_t)atoi(argv[1]) * 1000;
    EXPECT_INT(attributes_of_this_thread().runtime, wanted ? wanted : before.runtime);
    EXPECT_INT(attributes_of_this_thread().nice, before.nice);
    CHECK(pthread_create(&thread, NULL, read_in_thread, &in_thread) == 0 && pthread_join(thread, NULL) == 0, "a thread");
    EXPECT_INT(in_thread.runtime, before.runtime);
    OK(MPI_Finalize());
    return 0;
}
