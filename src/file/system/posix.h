// Files of a file system that behaves as POSIX describes: a write is visible to every process as soon as it has returned. Drivers of other
// file systems derive from PosixFile and replace what differs there.
#pragma once

#include "file/system/open_file.h"

namespace starling::file {

class PosixFile : public OpenFile {
  public:
    /// Takes over the descriptor.
    explicit PosixFile(int descriptor) : descriptor_(descriptor) {}
    PosixFile(const PosixFile&) = delete;
    PosixFile& operator=(const PosixFile&) = delete;
    ~PosixFile() override;

    Moved read(int64_t offset, const iovec* pieces, int count) override;
    Moved write(int64_t offset, const iovec* pieces, int count) override;
    int size(int64_t& bytes) override;
    int identify(uint64_t& device, uint64_t& inode) override;
    int resize(int64_t bytes) override;
    int preallocate(int64_t bytes) override;
    int sync() override;
    bool syncs_for_host() override;
    int lock(Extent range, bool exclusive) override;
    int unlock(Extent range) override;
    int close() override;
    FileLayout layout() const override;
    const char* driver() const override { return "posix"; }
    bool coherent() const override { return true; }
    Caching caching() override { return Caching::none; }

    /// Returns whether a file is on a FUSE file system, or may be. The program behind it may keep data of each open file.
    static bool is_on_fuse(int descriptor);

  protected:
    int descriptor() const { return descriptor_; }
    /// sync(), through a given descriptor of the file.
    static int sync_descriptor(int descriptor);
    bool is_on_fuse() const { return is_on_fuse(descriptor_); }
    /// write(), through a given descriptor of the file.
    static Moved write_to(int descriptor, int64_t offset, const iovec* pieces, int count);
    /// One call of pwritev(2) or its like, which may write less. `limit`: file_size_limit().
    static ssize_t write_some(int descriptor, int64_t limit, int64_t offset, const iovec* pieces, int count);

  private:
    bool grows_beyond_limit(int64_t bytes);
    int descriptor_;
};

/// Opens a file as `params` asks and stores its descriptor, which no other program inherits. `further_flags` are added for open(2). Never
/// blocks on a FIFO. Returns an errno value: EISDIR for a folder, ESPIPE for a FIFO, socket or terminal.
int open_descriptor(const OpenParams& params, int further_flags, int& descriptor);

}  // namespace starling::file
