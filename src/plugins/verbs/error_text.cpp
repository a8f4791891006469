#include "plugins/verbs/error_text.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace starling::verbs {

void Problem::describe(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text_, sizeof text_, format, arguments);
    va_end(arguments);
}

void Problem::describe_memory(const char* device, uint64_t bytes, int error) {
    rlimit limit = {};
    getrlimit(RLIMIT_MEMLOCK, &limit);
    if ((error == ENOMEM || error == EAGAIN || error == EPERM) && limit.rlim_cur != RLIM_INFINITY) {
        describe(
            "%s may not lock %llu bytes of memory: the limit of locked memory is %llu bytes (ulimit -l %llu). Raise it with "
            "'ulimit -l unlimited', in /etc/security/limits.d (memlock), or by LimitMEMLOCK=infinity in the systemd unit that "
            "starts the processes",
            device, static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(limit.rlim_cur),
            static_cast<unsigned long long>(limit.rlim_cur / 1024));
        return;
    }
    describe("%s can't register %llu bytes of memory: %s", device, static_cast<unsigned long long>(bytes),
             std::strerror(error));
}

void explain_open(char* out, size_t size, const char* file, int error) {
    // Determines the reason itself: if libibverbs may not open the file, it searches for another one and finally sets ENOENT.
    char path[128];
    std::snprintf(path, sizeof path, "/dev/infiniband/%s", file);
    if (error == ENOENT && access(path, F_OK) == 0 && access(path, R_OK | W_OK) != 0) error = errno;
    const char* remedy = "";
    if (error == EACCES || error == EPERM) remedy = ": put the user into its group, or add a udev rule with MODE=\"0666\"";
    if (error == ENOENT || error == ENODEV || error == ENXIO)
        remedy = ": load ib_uverbs, and let the container have /dev/infiniband";
    std::snprintf(out, size, "%s: %s%s", path, std::strerror(error), remedy);
}

}  // namespace starling::verbs
