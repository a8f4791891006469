// Batches of system calls: the pieces of a transfer, paired and sorted into runs of the file, so that they can be read or written without
// the library's lock.
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "file/file.h"
#include "file/memory_cursor.h"

namespace starling::file {

/// Runs of the file and the memory of each. perform() makes the system calls.
struct TransferBatch {
    struct Run {
        Extent file;
        size_t first;  ///< index of the run's first piece of memory
        int count;
    };
    std::vector<Run> runs;
    std::vector<iovec> pieces;
    int64_t bytes = 0;
    bool writes = false;
    int64_t sieve = 0;                    ///< bytes of `buffer`; 0: no buffer
    std::unique_ptr<std::byte[]> buffer;  ///< buffer through which a read takes runs and the gaps between them

    void clear() {
        runs.clear();
        pieces.clear();
        bytes = 0;
    }
};

/// Reads or writes the batch. Stops at the first error and at the end of the file. Needs no lock.
Moved perform(OpenFile& system, const TransferBatch& batch);

/// Cuts a transfer into batches. The file and the types must outlive it.
class TransferCutter {
  public:
    TransferCutter(const File& file, const FileTransfer& transfer, bool writes);
    /// Fills the next batch; returns false if nothing is left.
    bool next(TransferBatch& batch);

  private:
    static constexpr size_t kPieces = 1024;  ///< most pieces of memory per batch
    void append(TransferBatch& batch, const Extent& run, const iovec& block) const;
    void choose_sieve(TransferBatch& batch) const;

    const File& file_;
    ExtentCursor extents_;
    MemoryCursor memory_;
    Extent run_;  ///< rest of the run whose memory did not fit into the last batch
    bool writes_;
};

}  // namespace starling::file
