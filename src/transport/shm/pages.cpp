#include "transport/shm/pages.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/memory_limit.h"
#include "base/page_size.h"
#include "base/process.h"
#include "base/state.h"
#include "job/descriptor_passing.h"

namespace starling::shm {

namespace {

STARLING_STATE uint64_t most = 0;  ///< most bytes that can be allocated; 0: not determined yet

/// Returns whether the machine and its control group can provide `bytes`. Checked in advance, because exceeding the machine's memory would
/// raise SIGBUS at some later access, and exceeding a control group's limit would kill the process.
bool machine_has(uint64_t bytes) {
    if (most == 0) {
        struct sysinfo info;
        most = memory_limit();
        if (sysinfo(&info) == 0) most = std::min(most, (uint64_t{info.totalram} + info.totalswap) * info.mem_unit);
    }
    if (bytes > most) errno = ENOMEM;
    return bytes <= most;
}

/// Returns whether the limit of file sizes permits `bytes`. Beyond the limit ftruncate does not only fail but raises SIGXFSZ.
bool within_file_limit(uint64_t bytes) {
    rlimit limit;
    const bool within = getrlimit(RLIMIT_FSIZE, &limit) != 0 || bytes <= limit.rlim_cur;
    if (!within) errno = EFBIG;
    return within;
}

/// Reserves address space at a multiple of `alignment`. Returns null if there is not enough.
std::byte* find_room(uint64_t bytes, uint64_t alignment) {
    void* all = mmap(nullptr, bytes + alignment, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED) return nullptr;
    auto* first = static_cast<std::byte*>(all);
    const uint64_t before = (alignment - reinterpret_cast<uintptr_t>(first) % alignment) % alignment;
    if (before) munmap(first, before);
    // Only whole pages are unmapped, so the page in which `bytes` ends stays.
    const uint64_t kept = (before + bytes + kPage - 1) / kPage * kPage;
    if (kept < bytes + alignment) munmap(first + kept, bytes + alignment - kept);
    return first + before;
}

}  // namespace

Pages::~Pages() {
    if (data_) munmap(data_, bytes_);
    // Check the inode before closing: the program may have closed the descriptor, and opened a file under the same number.
    if (kept_) job::withdraw_descriptor(name_.inode);
    struct stat status;
    if (owned_ && fstat(name_.descriptor, &status) == 0 && status.st_ino == name_.inode && status.st_dev == device_)
        close(name_.descriptor);
}

bool Pages::map(int descriptor, uint64_t bytes, uint64_t alignment) {
    // A mapping aligned to a huge page can use huge pages.
    const uint64_t wanted = bytes >= kHugePage ? std::max(alignment, kHugePage) : alignment;
    std::byte* place = wanted > kPage ? find_room(bytes, wanted) : nullptr;
    if (!place && wanted > kHugePage) place = find_room(bytes, kHugePage);
    void* at = mmap(place, bytes, PROT_NONE, MAP_SHARED | MAP_NORESERVE | (place ? MAP_FIXED : 0), descriptor, 0);
    if (at == MAP_FAILED) {
        if (place) munmap(place, bytes);
        return false;
    }
    // Exclude the mapping from core dumps, which would allocate the file's untouched pages, hidden or not.
    madvise(at, bytes, MADV_DONTDUMP);
    data_ = static_cast<std::byte*>(at);
    bytes_ = bytes;
    shown_ = 0;
    return true;
}

bool Pages::show_more(uint64_t bytes) {
    // Show whole huge pages, as each call costs time; a range that ends inside a huge page would split it.
    const uint64_t last = std::min((bytes + kHugePage - 1) / kHugePage * kHugePage, bytes_);
    if (bytes > last || mprotect(data_ + shown_, last - shown_, PROT_READ | PROT_WRITE) != 0) return false;
    if (owned_) madvise(data_ + shown_, last - shown_, MADV_DODUMP);
    shown_ = last;
    return true;
}

void Pages::put_into_dumps() { madvise(data_, shown_, MADV_DODUMP); }

bool Pages::make(uint64_t bytes, uint64_t alignment) {
    return machine_has(bytes) && within_file_limit(bytes) && make(bytes, bytes, alignment) && show(bytes);
}

bool Pages::make_hidden(uint64_t bytes) { return machine_has(bytes) && within_file_limit(bytes) && make(bytes, bytes, 0); }

bool Pages::reserve(uint64_t limit, uint64_t alignment) { return make(0, limit, alignment); }

bool Pages::grow(uint64_t bytes) {
    return machine_has(bytes) && within_file_limit(bytes) && ftruncate(name_.descriptor, static_cast<off_t>(bytes)) == 0 &&
           show(bytes);
}

bool Pages::make(uint64_t bytes, uint64_t limit, uint64_t alignment) {
    const int descriptor = memfd_create("starling-window", MFD_CLOEXEC);
    if (descriptor < 0) return false;
    struct stat status;
    if (ftruncate(descriptor, static_cast<off_t>(bytes)) != 0 || fstat(descriptor, &status) != 0 ||
        !map(descriptor, limit, alignment)) {
        const int error = errno;
        close(descriptor);
        errno = error;
        return false;
    }
    owned_ = true;
    device_ = status.st_dev;
    name_ = {knows_pids() ? static_cast<int32_t>(getpid()) : 0, descriptor, status.st_ino};
    // If the launcher gets no copy of the descriptor, neighbors cannot map the memory, and use other ways of access.
    kept_ = job::is_closed_to_others() && job::deposit_descriptor(descriptor, name_.inode);
    return true;
}

namespace {
/// Opens a neighbor's pages. Returns -1 with errno on failure.
int open_of_neighbour(const PagesName& name) {
    const bool may_check = name.pid != 0 && knows_pids() && proc_shows_pids();
    DescriptorPath path;
    if (may_check) find_descriptor_path(name.pid, name.descriptor, path);
    int descriptor = may_check ? ::open(path, O_RDWR | O_CLOEXEC) : -1;
    if (descriptor >= 0) return descriptor;
    const int error = may_check ? errno : EACCES;
    // With hidepid=2 the whole directory of a process that is not dumpable is hidden: ENOENT.
    if (error == EACCES || error == EPERM || error == ENOENT)
        descriptor = job::fetch_deposited(name.pid, name.descriptor, name.inode);
    errno = error;
    return descriptor;
}
}  // namespace

bool Pages::open(const PagesName& name, uint64_t bytes, uint64_t limit, uint64_t alignment) {
    const int descriptor = open_of_neighbour(name);
    if (descriptor < 0) return false;
    struct stat status;
    const bool is_it = fstat(descriptor, &status) == 0 && status.st_ino == name.inode && S_ISREG(status.st_mode) &&
                       static_cast<uint64_t>(status.st_size) >= bytes;
    errno = 0;
    const bool mapped = is_it && map(descriptor, limit, alignment);
    const int error = errno;
    close(descriptor);  // the mapping outlives the descriptor
    errno = error;
    if (mapped) name_ = name;
    return mapped;
}

}  // namespace starling::shm
