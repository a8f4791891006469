#include "file/system/range_lock.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/clock.h"

namespace starling::file {

namespace {

constexpr uint64_t kLockPatienceNs = 100'000'000;
constexpr useconds_t kFirstPauseUs = 20, kLongestPauseUs = 5000;

int set_lock(int descriptor, Extent range, int16_t type) {
    struct flock request {};
    request.l_type = type;
    request.l_whence = SEEK_SET;
    request.l_start = range.offset;
    request.l_len = range.bytes;
    while (::fcntl(descriptor, F_OFD_SETLK, &request) != 0)
        if (errno != EINTR) return errno == EACCES ? EAGAIN : errno == ENOSYS || errno == EOPNOTSUPP ? ENOLCK : errno;
    return 0;
}

}  // namespace

int lock_range(int descriptor, Extent range, bool exclusive) {
    if (range.bytes <= 0) return 0;  // a length of 0 would mean: up to the file's end
    const int access = ::fcntl(descriptor, F_GETFL) & O_ACCMODE;
    const bool write_lock = access == O_WRONLY || (access == O_RDWR && exclusive);
    // F_OFD_SETLKW would wait without an end, so the lock is requested again and again.
    const uint64_t deadline = now_ns() + kLockPatienceNs;
    for (useconds_t pause = kFirstPauseUs;; pause = std::min(2 * pause, kLongestPauseUs)) {
        const int error = set_lock(descriptor, range, write_lock ? F_WRLCK : F_RDLCK);
        if (error != EAGAIN || now_ns() >= deadline) return error;
        ::usleep(pause);
    }
}

int unlock_range(int descriptor, Extent range) { return range.bytes <= 0 ? 0 : set_lock(descriptor, range, F_UNLCK); }

}  // namespace starling::file
