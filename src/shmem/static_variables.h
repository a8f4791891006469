// The program's static and global variables, which neighbours map as they do the heap: what is private to the process where the loader put
// it becomes a mapping of a file without a name, in its place. A child made by fork has a copy, as it would without.
#pragma once

#include <cstddef>
#include <cstdint>

#include "transport/shm/pages.h"

namespace starling::shmem {

struct StaticVariables {
    std::byte* first = nullptr;
    uint64_t bytes = 0;
    shm::PagesName name;  ///< not valid: they are private

    /// How far into the file a variable of this address lies. So huge pages of the file are where they are in memory.
    static uint64_t offset_of(uint64_t address) { return address % (2u << 20); }
};

/// Before the process has threads, else they stay private; as where the system does not allow it, or nobody would take care of forks.
/// May be called again.
void share_variables();
/// Needs no lock.
const StaticVariables& variables();
/// Neighbours can open the file, even if the kernel lets them not look into this process. Needs the library's lock.
void hand_over_variables();

}  // namespace starling::shmem
