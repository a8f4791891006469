// `starling stacks`, which a crashing rank starts: prints the stack of the crash.
#pragma once

#include <cstdint>

namespace starling {

struct CrashOptions {
    int pid = 0, thread = 0, signal = 0;
    uint32_t rank = 0;
    uint64_t from = 0;  ///< address of the instruction that failed
};

/// Prints one text to standard error. Returns the exit code.
int print_crash(const CrashOptions& options);

}  // namespace starling
