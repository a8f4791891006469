// The contract between MPI's files and a file system: one open file of the operating system. A driver implements it for one kind of file
// system; everything above it (views, pointers, collective transfers) is the same for all.
//
// Reading and writing are thread-safe and need no lock of the library, so the helper thread (file/helper.h) calls them too. All other
// calls are made by one thread at a time.
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <memory>
#include <string>

namespace starling::file {

/// A run of consecutive bytes of a file.
struct Extent {
    int64_t offset = 0;
    int64_t bytes = 0;
    int64_t end() const { return offset + bytes; }
};

/// How the file system stores a file: domains of collective writes are aligned to it.
struct FileLayout {
    int64_t unit = 0;  ///< bytes that one server or lock covers (stripe, page); a power of two is not guaranteed; at least 1
    int units = 1;     ///< number of servers over which consecutive units go in turn
};

/// How processes cache a file. Each value includes the ones before it.
enum class Caching : uint8_t {
    none,        ///< a write is visible to all processes at once
    by_host,     ///< each host keeps parts of the file for its processes
    by_process,  ///< a process may keep parts of the file on its own, as with some FUSE file systems
};

/// Result of an attempt to read or write. `system_error` is an errno value, 0 for success. At the file's end a read moves fewer bytes
/// than asked for and has no error.
struct Moved {
    int64_t bytes = 0;
    int system_error = 0;
};

/// One open file. The destructor closes the file and ignores errors; close() reports them.
class OpenFile {
  public:
    virtual ~OpenFile() = default;

    /// Transfer consecutive bytes of the file from `offset` on to or from `count` (any number) pieces of memory, in order. Repeat what
    /// was interrupted or short, until all is moved, the end is reached (reads) or an error occurs.
    virtual Moved read(int64_t offset, const iovec* pieces, int count) = 0;
    virtual Moved write(int64_t offset, const iovec* pieces, int count) = 0;

    // All functions below return an errno value; 0 is success.
    virtual int size(int64_t& bytes) = 0;
    /// Returns the numbers by which this host knows the open file, whatever its name leads to by now.
    virtual int identify(uint64_t& device, uint64_t& inode) = 0;
    virtual int resize(int64_t bytes) = 0;
    /// Makes sure that the first `bytes` bytes have space on the device; never makes the file shorter.
    virtual int preallocate(int64_t bytes) = 0;
    /// Makes this process's writes visible to all other processes that call sync() or open afterwards, and stores them on the device.
    virtual int sync() = 0;
    /// Whether sync() also stores what other processes of this host have written to the file. May make system calls.
    virtual bool syncs_for_host() = 0;
    /// Locks a range against other processes, for MPI's atomic mode; blocks in steps of at most 100 ms so that the wait can end:
    /// returns EAGAIN if the lock was not granted in that time. ENOLCK or EOPNOTSUPP: this file system has no locks.
    virtual int lock(Extent range, bool exclusive) = 0;
    virtual int unlock(Extent range) = 0;
    virtual int close() = 0;

    virtual FileLayout layout() const = 0;
    /// Name of the driver, as MPI_File_get_info and reports show it: "posix", "nfs".
    virtual const char* driver() const = 0;
    /// Whether a read may bring more than was asked for into a buffer (sieving), and whether what another process of this or another host
    /// has written is visible at once (false: only after sync() there and a new open or sync() here).
    virtual bool coherent() const = 0;
    /// Returns how this process caches the file; Caching::none if it is coherent. May make system calls.
    virtual Caching caching() = 0;
    /// Returns whether this host has the byte at `offset` in its cache, as far as a driver that is not coherent can know. May make a system
    /// call, which waits for nothing.
    virtual bool is_cached(int64_t) { return false; }
};

/// Arguments of open_file().
struct OpenParams {
    std::string path;    ///< without prefix
    std::string driver;  ///< from a prefix of the name or a hint; empty: by the file system's type
    bool read = false, write = false, create = false, exclusive = false;
    int mode = 0666;            ///< permissions of a new file, before the umask
    int64_t striping_unit = 0;  ///< hints for a new file; 0: not given
    int striping_factor = 0;
    bool* created = nullptr;  ///< result: whether the call has created the file itself; null: not asked for
};

/// Opens a file with the driver for its file system. Returns an errno value; ENOTSUP if there is no driver with the name given.
int open_file(const OpenParams& params, std::unique_ptr<OpenFile>& opened);
/// Removes a file by its name. Returns an errno value.
int remove_file(const std::string& path);

/// Returns the numbers by which this host knows the file that has this name now. Returns an errno value.
int identify_file(const std::string& path, uint64_t& device, uint64_t& inode);

/// Splits a prefix such as "ufs:" or "nfs:" from a file's name: returns the driver's name (empty: no prefix) and shortens `name`. One
/// letter before the colon, or an unknown prefix, is a part of the name.
std::string split_prefix(std::string& name);

/// Returns the MPI error class of an errno value that a call on a file has returned. Records a sentence with the action (`doing`, an
/// infinitive such as "open" or "write to"), the file, the reason and the remedy.
[[gnu::cold]] int fail_of(int system_error, const char* doing, const std::string& path);

}  // namespace starling::file
