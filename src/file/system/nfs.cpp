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
/// Longest write whose whole pages are stored at once with the parts of pages at its ends, by one call instead of three.
constexpr int64_t kShortWrite = 64 * 1024;

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

NfsFile::NfsFile(int descriptor, int write_descriptor, int part_descriptor, bool shared_pages)
    : PosixFile(descriptor),
      write_descriptor_(write_descriptor),
      part_descriptor_(part_descriptor),
      shared_pages_(shared_pages) {
    drop_all_pages(descriptor);
}

NfsFile::~NfsFile() {
    if (write_descriptor_ >= 0) ::close(write_descriptor_);
    close_part_descriptor();
}

/// Errors need no report: what was written through it is stored already.
void NfsFile::close_part_descriptor() {
    if (part_descriptor_ >= 0) ::close(part_descriptor_);
    part_descriptor_ = -1;
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
    if (part_descriptor_ >= 0) return write_parts_apart(offset, pieces, count);
    return write_descriptor_ < 0 ? PosixFile::write(offset, pieces, count) : write_to(write_descriptor_, offset, pieces, count);
}

/// Writes whole pages as usual, and parts of pages so that the client does not extend them.
Moved NfsFile::write_parts_apart(int64_t offset, const iovec* pieces, int count) {
    const int64_t limit = file_size_limit();
    const int whole = write_descriptor_ >= 0 ? write_descriptor_ : descriptor();
    return move_all(offset, pieces, count, true, [&](int64_t at, const iovec* some, int n) {
        const int64_t bytes = bytes_of(some, n), before = at % kCachePage, after = (at + bytes) % kCachePage;
        if (before == 0 && after == 0) return write_some(whole, limit, at, some, n);
        if (n > 1 || bytes <= kShortWrite) return write_some(part_descriptor_, limit, at, some, n);
        const iovec first{some->iov_base, static_cast<size_t>(before ? kCachePage - before : bytes - after)};
        return write_some(before ? part_descriptor_ : whole, limit, at, &first, 1);
    });
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
    close_part_descriptor();
    if (write_descriptor_ >= 0) {
        // The server may report at the last moment that there is no space: sync, whose interruption can be repeated, before closing.
        error = store_writes();
        if (::close(write_descriptor_) != 0 && errno != EINTR && !error) error = errno;
        write_descriptor_ = -1;
    }
    const int closed = PosixFile::close();
    return error ? error : closed;
}

/// Opens the file that `descriptor` names again, for writing only. Returns -1 without /proc, or if the file's mode forbids it.
static int open_for_writing(const OpenParams& params, int descriptor, int further_flags) {
    OpenParams again = params;
    again.read = again.create = again.exclusive = false;
    again.created = nullptr;
    again.path = "/proc/thread-self/fd/" + std::to_string(descriptor);
    int opened = -1;
    return open_descriptor(again, further_flags, opened) == 0 ? opened : -1;
}

int open_nfs(const OpenParams& params, std::unique_ptr<OpenFile>& opened) {
    int descriptor = -1;
    const int error = try_in_renewed_folder(params.path, [&] { return open_descriptor(params, 0, descriptor); });
    if (error) return error;
    const int write = params.read && params.write ? open_for_writing(params, descriptor, 0) : -1;
    // FUSE extends no writes, and would store each one.
    const int part = params.write && !PosixFile::is_on_fuse(descriptor) ? open_for_writing(params, descriptor, O_DSYNC) : -1;
    opened = std::make_unique<NfsFile>(descriptor, write, part, params.read && params.write);
    return 0;
}

}  // namespace starling::file
