// A clock that is read in half the time, for sums that somebody looks at later: the processor's counter, where the kernel
// takes it for its clock as well, which runs alike on all cores and never stops; else nanoseconds.
#pragma once

#include <cstdint>

#include "base/clock.h"
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace starling {

/// What a tick is, in ns, is measured between start() and the moment at which one asks: the longer ago that is, the better.
class Ticks {
  public:
    /// To be called once before the others.
    void start();

    uint64_t now() const {
#if defined(__x86_64__)
        if (counter_) [[likely]]
            return __rdtsc();
#endif
        return now_ns();
    }

    double ns_per_tick() const;

  private:
    struct Moment {
        uint64_t ticks, ns;
    };
    Moment moment() const;

    bool counter_ = false;
    Moment began_{};
};

}  // namespace starling
