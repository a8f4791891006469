#include "file/system/posix.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "file/system/driver.h"
#include "file/system/file_size_limit.h"
#include "file/system/preallocate.h"
#include "file/system/range_lock.h"
#include "file/system/transfer_loop.h"

namespace starling::file {

PosixFile::~PosixFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
}

Moved PosixFile::read(int64_t offset, const iovec* pieces, int count) {
    return move_all(offset, pieces, count, false, [this](int64_t at, const iovec* some, int n) {
        // One piece costs the kernel less as such than as a list.
        return n == 1 ? ::pread(descriptor_, some->iov_base, some->iov_len, at) : ::preadv2(descriptor_, some, n, at, 0);
    });
}

Moved PosixFile::write(int64_t offset, const iovec* pieces, int count) { return write_to(descriptor_, offset, pieces, count); }

Moved PosixFile::write_to(int descriptor, int64_t offset, const iovec* pieces, int count) {
    const int64_t limit = file_size_limit();
    return move_all(offset, pieces, count, true, [descriptor, limit](int64_t at, const iovec* some, int n) {
        return write_some(descriptor, limit, at, some, n);
    });
}

ssize_t PosixFile::write_some(int descriptor, int64_t limit, int64_t offset, const iovec* pieces, int count) {
    if (offset >= limit) return errno = EFBIG, -1;  // the kernel would end the process by SIGXFSZ
    return count == 1 ? ::pwrite(descriptor, pieces->iov_base, pieces->iov_len, offset)
                      : ::pwritev2(descriptor, pieces, count, offset, 0);
}

int PosixFile::size(int64_t& bytes) {
    struct stat status;
    if (::fstat(descriptor_, &status) != 0) return errno;
    bytes = status.st_size;
    if (S_ISREG(status.st_mode)) return 0;
    bytes = ::lseek(descriptor_, 0, SEEK_END);  // a block device's length
    return bytes < 0 ? errno : 0;
}

int PosixFile::identify(uint64_t& device, uint64_t& inode) {
    struct stat status;
    if (::fstat(descriptor_, &status) != 0) return errno;
    device = status.st_dev;
    inode = status.st_ino;
    return 0;
}

bool PosixFile::grows_beyond_limit(int64_t bytes) {
    int64_t now = 0;
    return bytes > file_size_limit() && (size(now) != 0 || bytes > now);
}

int PosixFile::resize(int64_t bytes) {
    if (grows_beyond_limit(bytes)) return EFBIG;
    while (::ftruncate(descriptor_, bytes) != 0)
        if (errno != EINTR) return errno;
    return 0;
}

int PosixFile::preallocate(int64_t bytes) {
    if (grows_beyond_limit(bytes)) return EFBIG;
    return reserve_space(descriptor_, bytes);
}

int PosixFile::sync() { return sync_descriptor(descriptor_); }

int PosixFile::sync_descriptor(int descriptor) {
    while (::fdatasync(descriptor) != 0) {
        if (errno == EINVAL || errno == EROFS) return 0;  // a special file, or a mount without writes: nothing to store
        if (errno != EINTR) return errno;
    }
    return 0;
}

bool PosixFile::is_on_fuse(int descriptor) {
    constexpr unsigned long kFuse = 0x65735546;
    struct statfs status;
    return ::fstatfs(descriptor, &status) != 0 || static_cast<uint32_t>(status.f_type) == kFuse;
}

// The processes of a host share the file's pages and attributes, and fdatasync(2) stores all pages. With FUSE it may store the data of one open
// file only.
bool PosixFile::syncs_for_host() { return !is_on_fuse(); }

int PosixFile::lock(Extent range, bool exclusive) { return lock_range(descriptor_, range, exclusive); }
int PosixFile::unlock(Extent range) { return unlock_range(descriptor_, range); }

int PosixFile::close() {
    const int descriptor = descriptor_;
    descriptor_ = -1;
    if (descriptor < 0) return EBADF;
    // Linux closes the descriptor even when the call is interrupted.
    return ::close(descriptor) == 0 || errno == EINTR ? 0 : errno;
}

FileLayout PosixFile::layout() const {
    struct stat status;
    const int64_t block = ::fstat(descriptor_, &status) == 0 ? status.st_blksize : 0;
    return {std::max<int64_t>(block, ::sysconf(_SC_PAGESIZE)), 1};
}

namespace {

int access_flags(const OpenParams& params) {
    int flags = O_CLOEXEC | O_NOCTTY;
    flags |= params.read && params.write ? O_RDWR : params.write ? O_WRONLY : O_RDONLY;
    if (params.create) flags |= O_CREAT;
    if (params.exclusive) flags |= O_EXCL;
    return flags;
}

int open_repeated(const OpenParams& params, int flags) {
    int descriptor;
    do descriptor = ::open(params.path.c_str(), flags, static_cast<mode_t>(params.mode));
    while (descriptor < 0 && errno == EINTR);
    return descriptor;
}

/// Checks that data of the file can be read and written at offsets, and makes its calls block as usual. Returns an errno value.
int accept(int descriptor) {
    struct stat status;
    if (::fstat(descriptor, &status) != 0) return errno;
    if (S_ISDIR(status.st_mode)) return EISDIR;
    if (!S_ISREG(status.st_mode) && ::lseek(descriptor, 0, SEEK_CUR) < 0) return ESPIPE;
    const int flags = ::fcntl(descriptor, F_GETFL);
    return flags < 0 || ::fcntl(descriptor, F_SETFL, flags & ~(O_NONBLOCK | O_ASYNC)) != 0 ? errno : 0;
}

/// Opens the file without waiting. If the caller asks whether the call creates the file, only O_EXCL answers that.
int open_or_create(const OpenParams& params, int flags) {
    if (!params.created || !params.create) return open_repeated(params, flags);
    const int descriptor = open_repeated(params, flags | O_EXCL);
    *params.created = descriptor >= 0;
    return descriptor < 0 && errno == EEXIST && !params.exclusive ? open_repeated(params, flags) : descriptor;
}

}  // namespace

int open_descriptor(const OpenParams& params, int further_flags, int& descriptor) {
    // Without O_NONBLOCK, open(2) waits for the other end of a FIFO. With it, it fails for a file that another process has leased.
    const int flags = access_flags(params) | further_flags;
    descriptor = open_or_create(params, flags | O_NONBLOCK);
    if (descriptor < 0 && errno == EWOULDBLOCK) descriptor = open_repeated(params, flags);
    if (descriptor < 0) return errno == ENXIO ? ESPIPE : errno;  // a FIFO without a reader, or a socket
    const int error = accept(descriptor);
    if (error) ::close(descriptor), descriptor = -1;
    return error;
}

int open_posix(const OpenParams& params, std::unique_ptr<OpenFile>& opened) {
    int descriptor = -1;
    const int error = open_descriptor(params, 0, descriptor);
    if (!error) opened = std::make_unique<PosixFile>(descriptor);
    return error;
}

}  // namespace starling::file
