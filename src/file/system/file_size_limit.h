// The limit on the size of files (`ulimit -f`). A write beyond it ends the process by SIGXFSZ, so the limit is checked first.
#pragma once

#include <sys/resource.h>

#include <cstdint>
#include <limits>

namespace starling::file {

/// Returns the limit in bytes as it is now, since a program may change it; the largest number if there is none.
inline int64_t file_size_limit() {
    rlimit limit;
    constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
    if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kMost;
    return limit.rlim_cur > static_cast<rlim_t>(kMost) ? kMost : static_cast<int64_t>(limit.rlim_cur);
}

}  // namespace starling::file
