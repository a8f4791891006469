#include "base/error.h"

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

namespace starling {

namespace {
thread_local char last_failure[1024];
}

int fail(int error_class, const char* format, ...) {
    va_list args;
    va_start(args, format);
    std::vsnprintf(last_failure, sizeof last_failure, format, args);
    va_end(args);
    return error_class;
}

std::string_view failure_text() { return last_failure; }

void clear_failure() { last_failure[0] = '\0'; }

const char* limit_remedy(int error) { return error == EMFILE || error == ENFILE ? "; raise `ulimit -n`" : ""; }

void panic(const char* format, ...) {
    char text[1024];
    va_list args;
    va_start(args, format);
    std::vsnprintf(text, sizeof text, format, args);
    va_end(args);
    std::fprintf(stderr, "starling: %s\n", text);
    std::abort();
}

}  // namespace starling
