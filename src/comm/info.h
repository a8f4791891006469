// Info objects: ordered key/value strings (MPI 5.0 chapter 10).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "mpi.h"

namespace starling::comm {

/// An ordered list of distinct keys with their values. Not thread-safe: needs the library's lock.
class Info {
  public:
    static constexpr uint32_t kMagic = 0x496e666f;
    uint32_t magic = 0;
    uint32_t pool_index = 0;

    struct Entry {
        std::string key, value;
    };
    std::vector<Entry> entries;

    /// The value of a key; nullptr if it is not set. Valid until the info changes.
    const std::string* find(std::string_view key) const;
    void set(std::string_view key, std::string_view value);
    bool remove(std::string_view key);
};

Info* make_info();
void destroy(Info* info);
Info* info_at(uint32_t pool_index);

/// MPI_INFO_ENV: how this process was started. Filled by set_environment_info().
Info* environment_info();
/// Fills MPI_INFO_ENV, once in MPI_Init: keys with empty values are left out.
void set_environment_info(std::string_view command, std::string_view argv, int maxprocs,
                          std::string_view wdir, std::string_view host, int thread_level);

/// nullptr for MPI_INFO_NULL, freed or never valid handles.
Info* from_handle(MPI_Info handle);
MPI_Info to_handle(Info* info);

}  // namespace starling::comm
