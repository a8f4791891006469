// The shared file pointer: one 64-bit word at rank 0, which all members of a file update by one-sided access. Processes of rank 0's host use
// the word in shared memory, others send packets. No file is involved.
//
// Not thread-safe: needs the library's lock.
#pragma once

#include <cstdint>

#include "collective/core/task.h"
#include "file/file.h"
#include "rma/access.h"
#include "rma/region.h"

namespace starling::file {

/// Description of the word, which rank 0 sends to all other members when the file is opened.
struct SharedPointerAddress {
    rma::RegionKey key;
    uint64_t word = 0;  ///< address of the word in the shared heap of rank 0's host
};

/// This process's access to the word. Its value is a position in the view's stream, in bytes.
struct SharedPointer {
    SharedPointer() = default;
    SharedPointer(const SharedPointer&) = delete;
    ~SharedPointer();

    rma::Target target;
    int64_t* word = nullptr;  ///< the word, at rank 0 only
    int64_t plain = 0;        ///< the word if rank 0 has no shared heap
    bool used = false;        ///< whether this process has used the pointer since the view was set
    bool is_kept = false;     ///< whether the word is never freed, because other members may still update it
};

/// Creates the word, at rank 0. Returns an MPI error class with failure_text().
int create_shared_pointer(File& file, SharedPointerAddress& address);
/// Prepares another member's access to the word.
int use_shared_pointer(File& file, const SharedPointerAddress& address);

/// Adds `bytes` to the pointer; `before` is the previous value, which must last until the task is done. Adding 0 reads the pointer.
collective::Task add_to_shared_pointer(File& file, int64_t bytes, int64_t& before);
/// Sets the word. Blocks. No other member may use the pointer meanwhile.
int store_shared_pointer(File& file, int64_t position);

}  // namespace starling::file
