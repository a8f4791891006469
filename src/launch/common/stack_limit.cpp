#include "launch/common/stack_limit.h"

#include <sys/resource.h>

namespace starling::launch {

std::string stack_problem() {
    constexpr rlim_t kLeast = 64 << 10;
    rlimit limit{};
    if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= kLeast) return {};
    return "the stack is limited to " + std::to_string(limit.rlim_cur >> 10) + " KB, and at least " +
           std::to_string(kLeast >> 10) + " KB are needed: raise the limit, as with `ulimit -s 8192`";
}

}  // namespace starling::launch
