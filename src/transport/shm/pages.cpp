#include "transport/shm/pages.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/memory_limit.h"
#include "base/state.h"

namespace starling::shm {

namespace {

constexpr uint64_t kPage = 4096;

STARLING_STATE uint64_t most = 0;  ///< bytes that there can be; 0: nobody has looked

/// More than the machine has would be found out by SIGBUS, and more than a control group allows by being killed, at some later touch.
bool machine_has(uint64_t bytes) {
    if (most == 0) {
        struct sysinfo info;
        most = memory_limit();
        if (sysinfo(&info) == 0) most = std::min(most, (uint64_t{info.totalram} + info.totalswap) * info.mem_unit);
    }
    return bytes <= most;
}

/// Beyond it ftruncate does not only fail but kills by SIGXFSZ.
bool within_file_limit(uint64_t bytes) {
    rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) != 0 || bytes <= limit.rlim_cur;
}

constexpr uint64_t kHuge = 2u << 20;

/// Address space at a multiple of `alignment`, taken. Null if there is none.
std::byte* find_room(uint64_t bytes, uint64_t alignment) {
    void* all = mmap(nullptr, bytes + alignment, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED) return nullptr;
    auto* first = static_cast<std::byte*>(all);
    const uint64_t before = (alignment - reinterpret_cast<uintptr_t>(first) % alignment) % alignment;
    if (before) munmap(first, before);
    // Whole pages are given back, so the part of one that `bytes` ends in stays.
    const uint64_t kept = (before + bytes + kPage - 1) / kPage * kPage;
    if (kept < bytes + alignment) munmap(first + kept, bytes + alignment - kept);
    return first + before;
}

}  // namespace

Pages::~Pages() {
    if (data_) munmap(data_, bytes_);
    if (owned_) close(name_.descriptor);
}

bool Pages::map(int descriptor, uint64_t bytes, uint64_t alignment) {
    // What is mapped at a multiple of a huge page may get some.
    const uint64_t wanted = bytes >= kHuge ? std::max(alignment, kHuge) : alignment;
    std::byte* place = wanted > kPage ? find_room(bytes, wanted) : nullptr;
    if (!place && wanted > kHuge) place = find_room(bytes, kHuge);
    void* at = mmap(place, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | (place ? MAP_FIXED : 0), descriptor, 0);
    if (at == MAP_FAILED) {
        if (place) munmap(place, bytes);
        return false;
    }
    data_ = static_cast<std::byte*>(at);
    bytes_ = bytes;
    return true;
}

bool Pages::make(uint64_t bytes) { return machine_has(bytes) && within_file_limit(bytes) && make(bytes, bytes, 0); }

bool Pages::reserve(uint64_t limit, uint64_t alignment) { return make(0, limit, alignment); }

bool Pages::grow(uint64_t bytes) {
    return machine_has(bytes) && within_file_limit(bytes) && ftruncate(name_.descriptor, static_cast<off_t>(bytes)) == 0;
}

bool Pages::make(uint64_t bytes, uint64_t limit, uint64_t alignment) {
    const int descriptor = memfd_create("starling-window", MFD_CLOEXEC);
    if (descriptor < 0) return false;
    struct stat status;
    if (ftruncate(descriptor, static_cast<off_t>(bytes)) != 0 || fstat(descriptor, &status) != 0 ||
        !map(descriptor, limit, alignment)) {
        close(descriptor);
        return false;
    }
    owned_ = true;
    name_ = {static_cast<int32_t>(getpid()), descriptor, status.st_ino};
    return true;
}

bool Pages::open(const PagesName& name, uint64_t bytes, uint64_t limit) {
    char path[48];
    std::snprintf(path, sizeof path, "/proc/%d/fd/%d", name.pid, name.descriptor);
    const int descriptor = ::open(path, O_RDWR | O_CLOEXEC);
    if (descriptor < 0) return false;
    struct stat status;
    const bool is_it = fstat(descriptor, &status) == 0 && status.st_ino == name.inode && S_ISREG(status.st_mode) &&
                       static_cast<uint64_t>(status.st_size) >= bytes;
    const bool mapped = is_it && map(descriptor, limit ? limit : bytes);
    close(descriptor);  // the mapping stays
    if (mapped) name_ = name;
    return mapped;
}

}  // namespace starling::shm
