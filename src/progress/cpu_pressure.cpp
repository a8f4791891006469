#include "progress/cpu_pressure.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "base/state.h"

namespace starling::progress {

namespace {

/// Returns the number of runnable threads in a text like "0.20 0.18 0.12 3/100 23282" (proc_loadavg(5)); 0 for any other text.
long runnable_of(char* text) {
    for (int field = 0; field < 3; ++field) {
        text = std::strchr(text, ' ');
        if (!text++) return 0;
    }
    char* end;
    const long count = std::strtol(text, &end, 10);
    return *end == '/' ? count : 0;
}

}  // namespace

bool cores_are_short() {
    // The open /proc/loadavg; -1: not opened. A program may close all descriptors it does not know. The read then fails, or returns other
    // text.
    STARLING_STATE static int file = -1;
    STARLING_STATE static long cores = 0;
    if (cores == 0) {
        file = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
        cores = sysconf(_SC_NPROCESSORS_ONLN);
    }
    char text[64];
    const ssize_t bytes = file < 0 ? 0 : pread(file, text, sizeof text - 1, 0);
    if (bytes <= 0) return false;
    text[bytes] = '\0';
    return runnable_of(text) > cores;
}

}  // namespace starling::progress
