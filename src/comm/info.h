// Info objects: ordered key/value strings (MPI 5.0 chapter 10).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "mpi.h"

namespace starling::comm {

/// An ordered list of distinct keys with their values. The functions below are thread-safe, also before MPI_Init and after MPI_Finalize
/// (MPI 5.0 section 11.4.1). The members are not: for an object whose handle the application has, hold info_mutex.
class Info {
  public:
    static constexpr uint32_t kMagic = 0x496e666f;
    uint32_t magic = 0;
    uint32_t pool_index = 0;

    struct InfoEntry {
        std::string key, value;
        bool operator==(const InfoEntry&) const = default;
    };
    std::vector<InfoEntry> entries;

    /// Returns the value of a key; nullptr if it is not set. Valid until the info changes.
    const std::string* find(std::string_view key) const;
    void set(std::string_view key, std::string_view value);
    bool remove(std::string_view key);
};

extern Mutex info_mutex;

Info* make_info();
void destroy(Info* info);
Info* info_at(uint32_t pool_index);

/// Returns MPI_INFO_ENV, which describes how this process was started. Filled by set_environment_info(); use it only under info_mutex.
Info* environment_info();
/// Fills MPI_INFO_ENV, once in MPI_Init: the entries of read_process_info(), the job's size and the thread level.
void set_environment_info(int maxprocs, int thread_level);
/// Copies the entries for MPI_Info_create_env to `copy`. A process determines them without MPI, so they are the same before MPI_Init and
/// after MPI_Finalize.
void read_process_info(Info& copy);

/// Returns the info of a handle; nullptr for MPI_INFO_NULL and for freed or invalid handles.
Info* from_handle(MPI_Info handle);
MPI_Info to_handle(Info* info);

/// Copies keys and values of a handle's info; MPI_INFO_NULL has none. Returns false if the handle is not valid.
bool read_info(MPI_Info handle, Info& copy);
/// Returns the alignment of allocated memory in bytes: the key mpi_minimum_memory_alignment, if that is a power of two and more than a
/// cache line; else a cache line.
uint64_t minimum_alignment(const Info& info);

}  // namespace starling::comm
