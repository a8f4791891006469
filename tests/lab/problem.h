// Error reporting of the lab's programs: one line on standard error, and an exit code.
#pragma once

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace starling::lab {

// Exit codes: 1 is a failure; 77 means that the test cannot run on this machine or for this user (CTest's "skipped").
constexpr int failed = 1;
constexpr int cannot = 77;

// Prints "lab: <what>: <errno's text>" and ends the process.
[[noreturn]] inline void die(const char* what, int code = failed) {
    std::fprintf(stderr, "lab: %s: %s\n", what, std::strerror(errno));
    std::exit(code);
}

// Ends the process if a system call returned a negative value.
inline int must(int result, const char* what) {
    if (result < 0) die(what);
    return result;
}

}  // namespace starling::lab
