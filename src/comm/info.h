// Info objects: ordered key/value strings (MPI 5.0 chapter 10).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "mpi.h"

namespace starling::comm {

/// An ordered list of distinct keys with their values. The functions below are thread-safe, before MPI_Init and after
/// MPI_Finalize too (MPI 5.0 section 11.4.1); the members are not: those of an object that the application has a handle of
/// are used under info_mutex.
class Info {
  public:
    static constexpr uint32_t kMagic = 0x496e666f;
    uint32_t magic = 0;
    uint32_t pool_index = 0;

    struct Entry {
        std::string key, value;
        bool operator==(const Entry&) const = default;
    };
    std::vector<Entry> entries;

    /// The value of a key; nullptr if it is not set. Valid until the info changes.
    const std::string* find(std::string_view key) const;
    void set(std::string_view key, std::string_view value);
    bool remove(std::string_view key);
};

extern Mutex info_mutex;

Info* make_info();
void destroy(Info* info);
Info* info_at(uint32_t pool_index);

/// MPI_INFO_ENV: how this process was started. Filled by set_environment_info(), used under info_mutex.
Info* environment_info();
/// Fills MPI_INFO_ENV, once in MPI_Init: what read_process_info() gives, the job's size and the thread level.
void set_environment_info(int maxprocs, int thread_level);
/// What MPI_Info_create_env gives: the entries that a process has of itself, the same before MPI_Init, after it and after
/// MPI_Finalize.
void read_process_info(Info& copy);

/// nullptr for MPI_INFO_NULL, freed or never valid handles.
Info* from_handle(MPI_Info handle);
MPI_Info to_handle(Info* info);

/// Copies keys and values of the info behind a handle; of MPI_INFO_NULL there are none. False if the handle is not valid.
bool read_info(MPI_Info handle, Info& copy);
/// Of memory: the key mpi_minimum_memory_alignment, if that is a power of two and more than a cache line; else a cache line.
uint64_t minimum_alignment(const Info& info);

}  // namespace starling::comm
