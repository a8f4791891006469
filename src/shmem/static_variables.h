// Makes the program's static and global variables accessible to neighbors, which map them like the heap. The private mapping made by the
// loader is replaced by a mapping of an unnamed file at the same address. A child made by fork has a copy of the variables, as it would
// with the private mapping.
#pragma once

#include <cstddef>
#include <cstdint>

#include "link/host_memory.h"

namespace starling::shmem {

struct StaticVariables {
    std::byte* first = nullptr;
    uint64_t bytes = 0;
    link::PagesName name;  ///< name of the file; not valid: the variables are private

    /// Returns the offset in the file of the variable at this address. The offset is the address modulo 2 MB, so that huge pages of the
    /// file are aligned like those in memory.
    static uint64_t offset_of(uint64_t address) { return address % (2u << 20); }
};

/// Moves the program's variables into the file's mapping. Must be called before the process has threads; otherwise the variables stay private. They also stay private if the
/// system does not allow the change or no fork handlers are registered. May be called repeatedly.
void share_variables();
/// Returns the description of the program's variables. Needs no lock.
const StaticVariables& variables();
/// Deposits the file with the launcher if the kernel does not let neighbors open this process's descriptors. Needs the library's lock.
void publish_variables();

}  // namespace starling::shmem
