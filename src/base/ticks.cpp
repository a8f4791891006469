#include "base/ticks.h"

#include <fcntl.h>
#include <unistd.h>

#include <string_view>

namespace starling {

namespace {

constexpr uint64_t kLeastNs = 200'000;  ///< a shorter interval would be too imprecise

bool kernel_counts_on_it() {
    const int file = open("/sys/devices/system/clocksource/clocksource0/current_clocksource", O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;
    char name[16];
    const ssize_t bytes = read(file, name, sizeof name);
    close(file);
    return bytes > 0 && std::string_view(name, static_cast<size_t>(bytes)).starts_with("tsc");
}

}  // namespace

// Reads both clocks together. Tries again if the thread loses the core between the two readings.
Ticks::Moment Ticks::moment() const {
    Moment best{};
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < 5 && least > 500; ++i) {
        const uint64_t before = now_ns(), ticks = now(), between = now_ns() - before;
        if (between < least) best = {ticks, before + between / 2};
        if (between < least) least = between;
    }
    return best;
}

void Ticks::start() {
    counter_ = kernel_counts_on_it();
    began_ = moment();
}

double Ticks::ns_per_tick() const {
    if (!counter_) return 1;
    Moment here{};
    do here = moment();
    while (here.ns - began_.ns < kLeastNs || here.ticks <= began_.ticks);
    return static_cast<double>(here.ns - began_.ns) / static_cast<double>(here.ticks - began_.ticks);
}

}  // namespace starling
