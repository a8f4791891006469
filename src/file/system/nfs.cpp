#include "file/system/nfs.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "file/system/driver.h"
#include "file/system/file_size_limit.h"
#include "file/system/lock_scope.h"
#include "file/system/transfer_loop.h"

namespace starling::file {

namespace {

constexpr int64_t kCachePage = 4096;
/// Length and alignment of the largest piece in which Linux caches a file. It drops a piece only as a whole.
constexpr int64_t kCachePiece = 2 << 20;

int64_t bytes_of(const iovec* pieces, int count) {
    int64_t bytes = 0;
    for (int i = 0; i < count; ++i) bytes += static_cast<int64_t>(pieces[i].iov_len);
    return bytes;
}

/// Requests the file's attributes from the server, whatever the age of the cached ones.
int current_size(int descriptor, int64_t& bytes) {
    struct statx status;
    if (::statx(descriptor, "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC, STATX_SIZE | STATX_MTIME, &status) != 0) return errno;
    bytes = static_cast<int64_t>(status.stx_size);
    return 0;
}

#ifndef SYS_cachestat
#define SYS_cachestat 451  // Debian 12's C library does not know it
#endif

/// Arguments of the system call cachestat, which Linux has from version 6.5 on. Only owners of a file and those who may write it may use it.
struct CacheRange {
    uint64_t offset, bytes;
};
struct CachedPages {
    uint64_t cached = 0, dirty = 0, written = 0, evicted = 0, evicted_recently = 0;
};

void drop_all_pages(int descriptor) { ::posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED); }

}  // namespace

NfsFile::NfsFile(int descriptor, int write_descriptor, bool shared_pages)
    : PosixFile(descriptor), write_descriptor_(write_descriptor), shared_pages_(shared_pages) {
    drop_all_pages(descriptor);
}

NfsFile::~NfsFile() {
    if (write_descriptor_ >= 0) ::close(write_descriptor_);
}

void NfsFile::drop_pages_around(int64_t offset) {
    if (offset % kCachePage == 0) return;
    ::posix_fadvise(descriptor(), offset / kCachePiece * kCachePiece, kCachePiece, POSIX_FADV_DONTNEED);
}

Moved NfsFile::write(int64_t offset, const iovec* pieces, int count) {
    if (shared_pages_) {
        const int64_t end = offset + bytes_of(pieces, count);
        drop_pages_around(offset);
        if (offset / kCachePage != end / kCachePage || offset % kCachePage == 0) drop_pages_around(end);
    }
    return write_descriptor_ < 0 ? PosixFile::write(offset, pieces, count) : write_to(write_descriptor_, offset, pieces, count);
}

int NfsFile::size(int64_t& bytes) { return current_size(descriptor(), bytes); }

bool NfsFile::is_cached(int64_t offset) {
    const CacheRange page{static_cast<uint64_t>(offset / kCachePage * kCachePage), kCachePage};
    CachedPages pages;
    return ::syscall(SYS_cachestat, descriptor(), &page, &pages, 0) == 0 && pages.cached > 0;
}

int NfsFile::preallocate(int64_t bytes) {
    // The file's length must be the new one on all hosts.
    const int error = PosixFile::preallocate(bytes);
    return error ? error : PosixFile::sync();
}

int NfsFile::store_writes() { return write_descriptor_ < 0 ? PosixFile::sync() : sync_descriptor(write_descriptor_); }

int NfsFile::sync() {
    const int error = store_writes();
    return error ? error : forget_cache();
}

int NfsFile::forget_cache() {
    int64_t bytes;
    const int error = current_size(descriptor(), bytes);
    drop_all_pages(descriptor());
    return error;
}

int NfsFile::lock(Extent range, bool exclusive) {
    // With such locks the atomic mode would not be atomic between hosts.
    if (locks_end_at_host(descriptor())) return ENOLCK;
    if (const int error = PosixFile::lock(range, exclusive)) return error;
    const int error = forget_cache();
    if (error) PosixFile::unlock(range);
    return error;
}

int NfsFile::unlock(Extent range) {
    const int error = store_writes();
    const int unlocked = PosixFile::unlock(range);
    return error ? error : unlocked;
}

int NfsFile::close() {
    int error = 0;
    if (write_descriptor_ >= 0) {
        // The server may report at the last moment that there is no space: sync, whose interruption can be repeated, before closing.
        error = store_writes();
        if (::close(write_descriptor_) != 0 && errno != EINTR && !error) error = errno;
        write_descriptor_ = -1;
    }
    const int closed = PosixFile::close();
    return error ? error : closed;
}

int open_nfs(const OpenParams& params, std::unique_ptr<OpenFile>& opened) {
    int descriptor = -1, write_descriptor = -1;
    if (const int error = open_descriptor(params, 0, descriptor)) return error;
    if (params.read && params.write) {
        OpenParams again = params;
        again.read = again.create = again.exclusive = false;
        again.path = "/proc/thread-self/fd/" + std::to_string(descriptor);
        // Without /proc, or if the file's mode forbids a second open, the first descriptor serves writes too.
        if (open_descriptor(again, 0, write_descriptor) != 0) write_descriptor = -1;
    }
    opened = std::make_unique<NfsFile>(descriptor, write_descriptor, params.read && params.write);
    return 0;
}

}  // namespace starling::file
