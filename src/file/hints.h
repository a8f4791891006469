// Hints of files (MPI 5.0 section 14.2.8) under the names that users of ROMIO and OMPIO set, what was done with each, and their defaults.
// docs/files.md has a table of them.
#pragma once

#include <cstdint>
#include <string>

#include "comm/info.h"

namespace starling::file {

struct FileLayout;

enum class Automatic : uint8_t { automatic, enable, disable };

/// The hints of one open file, the same on all members.
struct FileHints {
    /// cb_buffer_size: memory of an aggregator for collective transfers, both halves together; at least 8192 bytes
    int64_t buffer_bytes = 16 << 20;
    int aggregators = 0;    ///< cb_nodes; 0: one per host
    std::string placement;  ///< cb_config_list; empty: "*:1"
    /// romio_cb_write, romio_cb_read; collective_buffering=false disables both
    Automatic collective_write = Automatic::automatic, collective_read = Automatic::automatic;
    int64_t striping_unit = 0;  ///< bytes; 0: not given
    int striping_factor = 0;    ///< number of servers; 0: not given
    /// ind_rd_buffer_size: the most bytes that a sieving read takes at once; 0 (romio_ds_read=disable): reads take only what was asked for
    int64_t independent_bytes = 4 << 20;
    int permissions = 0666;  ///< file_perm: permissions of a new file, before the umask
    std::string
        driver;  ///< driver asked for by ROMIO_FSTYPE_FORCE or the hint starling_file_driver; empty: by the file system's type
    comm::Info given;  ///< all hints as given, for those that have no effect here
};

/// Returns the hints of a file as one info. They come from the hints file (ROMIO_HINTS, else /etc/romio-hints), from the program, and from
/// MPICH_MPIIO_HINTS for names like `name` (without prefix). Later ones replace earlier ones. One member calls it for all, because files and
/// variables may differ between hosts.
comm::Info gather_hints(const comm::Info& info, const std::string& name);

/// Reads the hints of an info object. Values that make no sense are ignored, as the standard asks for hints.
FileHints read_hints(const comm::Info& info);

/// Fills the info for MPI_File_get_info: each hint that a value in use stands for, with that value. `members`: number of the file's processes.
/// `visible`: whether each member sees the others' writes without MPI_File_sync. HDF5 reads this under ROMIO's name, and calls MPI_File_sync
/// after its collective writes if it is false.
void describe(const FileHints& hints, const FileLayout& layout, const char* driver, int members, bool visible,
              comm::Info& info);

}  // namespace starling::file
