#include "base/thread.h"

#include <signal.h>

#include <algorithm>
#include <cstddef>

namespace starling {

int start_thread(pthread_t& thread, void* (*run)(void*), void* argument) {
    constexpr size_t kLeastStack = 1 << 20;
    pthread_attr_t attributes;
    if (const int error = pthread_attr_init(&attributes)) return error;
    size_t stack = 0;
    pthread_attr_getstacksize(&attributes, &stack);
    pthread_attr_setstacksize(&attributes, std::max(stack, kLeastStack));
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    const int error = pthread_create(&thread, &attributes, run, argument);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    pthread_attr_destroy(&attributes);
    return error;
}

}  // namespace starling
