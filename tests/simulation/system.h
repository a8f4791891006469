// Common declarations of the files that replace libc's functions (system.cpp, sockets.cpp).
#pragma once

#include <dlfcn.h>
#include <netinet/in.h>
#include <time.h>

#include <cerrno>
#include <cstdint>

#include "network.h"
#include "prices.h"
#include "world.h"

/// Marks a function that the library calls in place of libc's.
#define SIMULATED extern "C" [[gnu::visibility("default")]]
/// The real function: that of libc or of the sanitizer.
#define REAL(name)                                                                           \
    ([] {                                                                                    \
        static const auto real = reinterpret_cast<decltype(&name)>(dlsym(RTLD_NEXT, #name)); \
        return real;                                                                         \
    }())

/// Lets a simulated process compute for `ns`: programs that wait for time by a loop of instructions call it in place of the loop.
SIMULATED void starling_simulated_compute(unsigned long ns);

namespace starling::simulation {

inline int failed(int error) {
    errno = error;
    return -1;
}

/// Called at the end of a simulated system call: time passes and another process may run; errno stays as the call left it.
template <class T>
T after(T result, uint64_t ns = prices().call) {
    const int error = errno;
    world()->pass(ns);
    errno = error;
    return result;
}

/// Called before an action takes effect, in worlds that predict times: the processor works before the data leaves.
inline void pay(uint64_t ns) {
    if (!prices().exact) return;
    const int error = errno;
    world()->pass(ns);
    errno = error;
}

/// Called at the end of a simulated call that has paid.
template <class T>
T after_paid(T result) {
    return prices().exact ? result : after(result);
}

/// Called at the end of a call that only looked, and found nothing.
template <class T>
T after_nothing(T result, uint64_t ns = prices().call) {
    const int error = errno;
    world()->pass_idly(ns);
    errno = error;
    return result;
}

/// The pause of a process between two polls, in worlds that predict times: the library's own is replaced by it (library.cpp).
void simulated_pause();

/// The time stamp counter that the running process reads.
uint64_t simulated_cycles();

inline uint64_t ns_of(const timespec& time) {
    return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

inline sockaddr_in to_system(const Address& address) {
    sockaddr_in out{};
    out.sin_family = AF_INET;
    out.sin_addr.s_addr = address.address;
    out.sin_port = htons(address.port);
    return out;
}

}  // namespace starling::simulation
