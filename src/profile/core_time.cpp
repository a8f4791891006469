#include "profile/core_time.h"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>

#include "base/counters.h"

namespace starling::profile {

namespace {

using control::ProfileReport;

/// Returns the second number of /proc/thread-self/schedstat: the time that this thread was ready to run and had no core, ns.
uint64_t run_delay() {
    char text[128];
    const int fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    const ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    if (n <= 0) return 0;
    text[n] = '\0';
    char* rest = nullptr;
    std::strtoull(text, &rest, 10);
    return std::strtoull(rest, nullptr, 10);
}

std::vector<std::pair<uint32_t, uint32_t>> own_processors() {
    // Larger than any machine's set, which the call would refuse to cut.
    constexpr size_t kMost = 16384;
    cpu_set_t set[kMost / CPU_SETSIZE];
    std::vector<std::pair<uint32_t, uint32_t>> ranges;
    if (sched_getaffinity(0, sizeof set, set) != 0) return ranges;
    for (uint32_t cpu = 0; cpu < kMost; ++cpu) {
        if (!CPU_ISSET_S(cpu, sizeof set, set)) continue;
        if (!ranges.empty() && ranges.back().second + 1 == cpu)
            ranges.back().second = cpu;
        else
            ranges.emplace_back(cpu, cpu);
    }
    return ranges;
}

}  // namespace

ProfileReport::CoreRecord read_core_use() {
    timespec cpu{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
    const uint64_t waited = counters.waited, slept = counters.slept;
    return {own_processors(), static_cast<uint64_t>(cpu.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(cpu.tv_nsec),
            waited > slept ? waited - slept : 0, run_delay()};
}

ProfileReport::CoreRecord since(const ProfileReport::CoreRecord& began, ProfileReport::CoreRecord now) {
    const auto less = [](uint64_t& later, uint64_t earlier) { later = later > earlier ? later - earlier : 0; };
    less(now.cpu_ns, began.cpu_ns);
    less(now.polled_ns, began.polled_ns);
    less(now.waited_ns, began.waited_ns);
    // A waiting thread that yields its core to another one is ready to run, but does not poll.
    less(now.polled_ns, now.waited_ns);
    return now;
}

}  // namespace starling::profile
