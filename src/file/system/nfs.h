// Files of a network file system with close-to-open caches: each host keeps pages and attributes of a file, and looks for changes by other
// hosts when a file is opened. Between two sync() or open, other hosts' writes may be invisible.
//
// No locks are needed, because this driver keeps the hosts' writes apart:
//
// A client that has read a page may later write all of it, although the program has changed a few bytes. It then undoes what another host has
// written to the rest. Linux writes whole pages if they are up to date in its cache. Writes therefore go through a descriptor that is open for
// writing only, for which Linux reads no pages. Before a write, the pages at its ends are dropped from the cache.
//
// Another process of this host may read such a page again before the write, which then extends it. The client of NFS never extends what is
// written by a descriptor with O_DSYNC, so parts of pages go through such a descriptor. These writes are stored before they return.
//
// A client remembers that a name is missing. A file that another host has created since is found after a request for its folder's attributes.
//
// sync() stores the writes on the server, requests the attributes from it, and drops the cached pages. In MPI's atomic mode lock() and unlock()
// do the same.
#pragma once

#include "file/system/posix.h"

namespace starling::file {

class NfsFile : public PosixFile {
  public:
    /// Takes over the descriptors. `write_descriptor`: the file open for writing only, or -1: writes use `descriptor`. `part_descriptor`: the
    /// same with O_DSYNC, or -1: parts of pages are written as whole ones are. `shared_pages`: whether any process may have read pages through
    /// this MPI file.
    NfsFile(int descriptor, int write_descriptor, int part_descriptor, bool shared_pages);
    ~NfsFile() override;

    Moved write(int64_t offset, const iovec* pieces, int count) override;
    int size(int64_t& bytes) override;
    int preallocate(int64_t bytes) override;
    int sync() override;
    int lock(Extent range, bool exclusive) override;
    int unlock(Extent range) override;
    int close() override;
    const char* driver() const override { return "nfs"; }
    bool coherent() const override { return false; }
    bool is_cached(int64_t offset) override;
    Caching caching() override { return is_on_fuse() ? Caching::by_process : Caching::by_host; }

  private:
    /// Stores what was written through the descriptor for writes: with FUSE, sync of another one may not. Returns an errno value.
    int store_writes();
    void drop_pages_around(int64_t offset);
    /// Requests the attributes from the server and drops the cached pages. Returns an errno value.
    int forget_cache();

    Moved write_parts_apart(int64_t offset, const iovec* pieces, int count);
    void close_part_descriptor();

    int write_descriptor_, part_descriptor_;
    bool shared_pages_;
};

}  // namespace starling::file
