// Counts accesses to files (MPI_File_...) by file and by the place in the program that makes them: calls, bytes and time.
//
// Not thread-safe: requires the library's lock (base/lock.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "profile/collectives.h"

namespace starling::profile {

/// The sums of the calls of one function for one file at one place in the program.
struct FileSum {
    const void* site;      ///< from call_site(); null: unknown
    const char* function;  ///< "MPI_File_write_at_all"
    const std::string* file;
    uint64_t calls = 0, bytes = 0, ns = 0;
};

/// One call that opens, accesses, stores or closes a file: from its begin to its end, or until the data of a non-blocking or split one have
/// been moved. It costs one predictable branch at each end if nothing is profiled.
class FileCall {
  public:
    /// Begins to measure a call of the MPI function in which this thread is.
    void begin() {
        if (watching) [[unlikely]]
            begin_measured();
    }
    /// Counts the call. A call that only begins, as one with wrong arguments, is not counted.
    void end(std::string_view file, int64_t bytes) {
        if (began_ != 0) [[unlikely]]
            count(file, bytes);
    }

  private:
    void begin_measured();
    void count(std::string_view file, int64_t bytes);

    const void* site_ = nullptr;
    const char* function_ = nullptr;
    uint64_t began_ = 0;  ///< time of the begin, ns; 0: the call is not measured
};

/// Number of files that are counted by name in a phase; further ones are counted together under kOtherFiles. A program that writes a file in
/// each step would otherwise need memory for all of their names.
inline constexpr size_t kNamedFiles = 1000;
inline constexpr std::string_view kOtherFiles = "(other files)";

/// Visits the rows of the current phase's table of files.
void each_file(void (*visit)(const FileSum& sum, void* argument), void* argument);
void clear_files();

}  // namespace starling::profile
