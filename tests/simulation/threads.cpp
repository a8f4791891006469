// Threads of simulated processes. A thread is a fiber like the process itself, and takes turns with all others, so it is switched at
// simulated calls only. Its thread-local variables are those of a real thread that does nothing else: libc creates them, and a fiber's
// switch changes the processor's thread pointer.
#include <malloc.h>
#include <pthread.h>
#include <sys/syscall.h>

#include <atomic>
#include <cerrno>

#include "features.h"
#include "system.h"

using namespace starling::simulation;

namespace {

/// Stack of a real thread, which also holds its thread-local variables: of all copies of the library, and glibc.rtld.optional_static_tls.
constexpr size_t kDonorStack = 8 << 20;

std::atomic<void*> given{nullptr};

/// Publishes the thread's pointer and sleeps until the program ends. It calls no function of libc, since these use thread-local variables.
void* give_variables(void*) {
    given.store(__builtin_thread_pointer());
    for (;;) {
        long result = SYS_pause;
        asm volatile("syscall" : "+a"(result) : : "rcx", "r11", "memory");
    }
}

/// Creates thread-local variables of a new thread. Returns null with errno.
void* make_variables() {
    mallopt(M_ARENA_MAX, 1);  // otherwise each thread gets a heap of its own
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, kDonorStack);
    given.store(nullptr);
    errno = REAL(pthread_create)(&thread, &attributes, give_variables, nullptr);
    pthread_attr_destroy(&attributes);
    if (errno != 0) return nullptr;
    while (!given.load()) REAL(sched_yield)();
    return given.load();
}

/// Acquires a mutex that another thread of the process may hold while it waits for its turn.
int lock_in_turn(pthread_mutex_t* mutex) {
    for (;;) {
        const int error = REAL(pthread_mutex_trylock)(mutex);
        if (error != EBUSY) return error;
        world()->yield();
    }
}

bool has_threads(const Process* process) { return process && !process->threads.empty(); }

/// The real function of condition variables: libc has two versions of each, and dlsym() may find the older one.
#define REAL_CONDITION(name) reinterpret_cast<decltype(&name)>(dlvsym(RTLD_NEXT, #name, "GLIBC_2.3.2"))

/// Waits on a condition variable until woken, or until `when`. Nothing runs between the release of the mutex and the sleep.
int wait_for_condition(pthread_cond_t* condition, pthread_mutex_t* mutex, uint64_t when) {
    pthread_mutex_unlock(mutex);
    world()->current()->futex = condition;
    const bool woken = world()->sleep_until(when);
    lock_in_turn(mutex);
    return woken ? 0 : ETIMEDOUT;
}

}  // namespace

SIMULATED int pthread_create(pthread_t* out, const pthread_attr_t* attributes, void* (*run)(void*), void* argument) noexcept {
    const Process* const me = caller();
    if (!me || !me->fiber) return REAL(pthread_create)(out, attributes, run, argument);
    void* const variables = make_variables();
    if (!variables) return errno;
    Process& thread = world()->add_thread(variables, [run, argument](Process& self) {
        run(argument);
        world()->wake_futex(&self);
    });
    done().add(Feature::threads);
    *out = reinterpret_cast<pthread_t>(&thread);
    return after(0);
}

SIMULATED int pthread_join(pthread_t thread, void** result) {
    if (!caller()) return REAL(pthread_join)(thread, result);
    auto* const other = reinterpret_cast<Process*>(thread);
    while (!other->gone()) {
        world()->current()->futex = other;
        world()->sleep_until(UINT64_MAX);
    }
    if (result) *result = nullptr;
    return 0;
}

// Not available: the ranks are one process to the kernel, and their memory is freed while the C library would still list their locks.
SIMULATED int pthread_mutexattr_setrobust(pthread_mutexattr_t* kind, int robust) noexcept {
    return caller() ? ENOTSUP : REAL(pthread_mutexattr_setrobust)(kind, robust);
}

SIMULATED int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
    const Process* const me = caller();
    return has_threads(me) ? lock_in_turn(mutex) : REAL(pthread_mutex_lock)(mutex);
}

SIMULATED int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
    if (!has_threads(caller())) return REAL_CONDITION(pthread_cond_wait)(condition, mutex);
    return wait_for_condition(condition, mutex, UINT64_MAX);
}

// The simulated clocks are all the same.
SIMULATED int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex, const timespec* until) {
    if (!has_threads(caller())) return REAL_CONDITION(pthread_cond_timedwait)(condition, mutex, until);
    return wait_for_condition(condition, mutex, ns_of(*until));
}

// Wakes all waiters: a condition variable may also wake threads that were not meant.
SIMULATED int pthread_cond_signal(pthread_cond_t* condition) noexcept {
    if (!has_threads(caller())) return REAL_CONDITION(pthread_cond_signal)(condition);
    world()->wake_futex(condition);
    return after(0);
}

SIMULATED int pthread_cond_broadcast(pthread_cond_t* condition) noexcept {
    if (!has_threads(caller())) return REAL_CONDITION(pthread_cond_broadcast)(condition);
    return pthread_cond_signal(condition);
}
