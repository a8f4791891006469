#include "base/memory_limit.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace starling {

namespace {

constexpr size_t kLongest = 4096;

/// Returns the number in a file, or UINT64_MAX for "max" or if there is no such file.
uint64_t read_limit(const char* path) {
    FILE* file = std::fopen(path, "re");
    if (!file) return UINT64_MAX;
    unsigned long long bytes;
    const bool said = std::fscanf(file, "%llu", &bytes) == 1;
    std::fclose(file);
    return said ? bytes : UINT64_MAX;
}

/// Returns the smallest limit of `group` and all groups above it. Shortens `group` by one level at a time. Inside a container, `group` may
/// be a name of the host's hierarchy while `root` is the container's. Groups without a file there have no limit.
uint64_t least_of(const char* root, char* group, const char* name) {
    uint64_t least = UINT64_MAX;
    for (;;) {
        char path[2 * kLongest];
        std::snprintf(path, sizeof path, "%s%s/%s", root, group, name);
        least = std::min(least, read_limit(path));
        char* const slash = std::strrchr(group, '/');
        if (!slash) return least;
        *slash = '\0';
    }
}

bool lists(const char* controllers, const char* wanted) {
    const size_t length = std::strlen(wanted);
    for (const char* at = controllers; (at = std::strstr(at, wanted)); at += length)
        if ((at == controllers || at[-1] == ',') && (at[length] == ',' || at[length] == '\0')) return true;
    return false;
}

}  // namespace

// A line is ID:CONTROLLERS:GROUP. The unified hierarchy (cgroup v2) has the number 0 and no controllers.
uint64_t memory_limit(const char* groups, const char* root) {
    FILE* file = std::fopen(groups, "re");
    if (!file) return UINT64_MAX;
    uint64_t least = UINT64_MAX;
    char line[kLongest];
    while (std::fgets(line, sizeof line, file)) {
        line[std::strcspn(line, "\n")] = '\0';
        char* const controllers = std::strchr(line, ':');
        char* const group = controllers ? std::strchr(controllers + 1, ':') : nullptr;
        if (!group) continue;
        *controllers = *group = '\0';
        char of_old[kLongest];
        std::snprintf(of_old, sizeof of_old, "%s/memory", root);
        if (controllers[1] == '\0')
            least = std::min(least, least_of(root, group + 1, "memory.max"));
        else if (lists(controllers + 1, "memory"))
            least = std::min(least, least_of(of_old, group + 1, "memory.limit_in_bytes"));
    }
    std::fclose(file);
    return least;
}

uint64_t memory_limit() { return memory_limit("/proc/self/cgroup", "/sys/fs/cgroup"); }

}  // namespace starling
