#include "file/system/preallocate.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "file/system/transfer_loop.h"

namespace starling::file {

namespace {

constexpr int64_t kLeastStep = 1 << 20;

/// Writes zeros to [offset, end). Returns an errno value.
int write_zeros(int descriptor, int64_t offset, int64_t end) {
    const std::vector<char> zeros(static_cast<size_t>(std::clamp<int64_t>(end - offset, 0, kLeastStep)));
    while (offset < end) {
        const iovec piece{const_cast<char*>(zeros.data()), static_cast<size_t>(std::min(end - offset, kLeastStep))};
        const Moved moved = move_all(offset, &piece, 1, true, [descriptor](int64_t at, const iovec* some, int n) {
            return ::pwritev(descriptor, some, n, at);
        });
        if (moved.system_error) return moved.system_error;
        offset += moved.bytes;
    }
    return 0;
}

}  // namespace

int fill_with_zeros(int descriptor, int64_t bytes) {
    const int64_t size = ::lseek(descriptor, 0, SEEK_END);
    if (size < 0) return errno;
    const int64_t within = std::min(size, bytes);
    for (int64_t at = 0; at < within;) {
        // A file system that cannot find holes reports data everywhere, or EINVAL.
        const int64_t hole = ::lseek(descriptor, at, SEEK_HOLE);
        if (hole < 0 || hole >= within) break;
        int64_t data = ::lseek(descriptor, hole, SEEK_DATA);
        if (data < 0 || data > within) data = within;
        if (const int error = write_zeros(descriptor, hole, data)) return error;
        at = data;
    }
    return write_zeros(descriptor, size, bytes);
}

int reserve_space(int descriptor, int64_t bytes) {
    // A signal interrupts a long call, and tmpfs then takes back what it has done. Smaller steps come to an end in spite of that.
    int64_t step = bytes;
    for (int64_t at = 0; at < bytes;) {
        if (::fallocate(descriptor, 0, at, std::min(step, bytes - at)) == 0) {
            at += std::min(step, bytes - at);
        } else if (errno == EOPNOTSUPP || errno == ENOSYS) {
            return fill_with_zeros(descriptor, bytes);
        } else if (errno == EINTR) {
            step = std::max(step / 2, kLeastStep);
        } else {
            return errno;
        }
    }
    return 0;
}

}  // namespace starling::file
