// How the output of ranks is marked, and to which files it goes. Names of files and prefixes are patterns:
//
//   %r rank   %R rank with leading zeros, so that names sort   %h host   %p number of the host in the job
//   %g number of the job, from 0 (spawned jobs follow)   %j the same from 1   %% a percent sign
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/wire.h"

namespace starling::launch {

struct OutputStyle {
    bool timestamp = false;   ///< true: each line begins with the time
    bool merged = false;      ///< true: standard error goes where standard output goes
    bool only_files = false;  ///< true: output that goes to a file is not copied to mpiexec's output
    std::string prefix;       ///< pattern of the text before each line; empty: none
    /// Patterns of the files for standard output and error, absolute; empty: none. A file whose name is the same for all ranks is written by
    /// mpiexec, others by the launcher of the rank's host.
    std::string output_file, error_file;

    bool operator==(const OutputStyle&) const = default;
};

/// The values for a pattern.
struct PatternValues {
    uint32_t rank = 0, size = 1;
    uint32_t job = 0;   ///< number of the job, from 0
    uint32_t host = 0;  ///< number of the host in the job
    std::string host_name;
};

/// Returns a sentence about the first specifier that is not valid; empty if all are.
std::string check_pattern(std::string_view pattern);
std::string expand_pattern(std::string_view pattern, const PatternValues& values);
/// Returns whether all ranks of a job have the same text.
bool is_shared(std::string_view pattern);
/// Returns a pattern for exactly this text.
std::string as_pattern(std::string_view text);

/// Writes the last field of a message, unless the style is the default: releases that do not know the field read such messages.
void write_unless_default(Writer& writer, const OutputStyle& style);
/// Sets `out`; invalid patterns become empty.
void read_style(Reader& reader, OutputStyle& out);

/// Streams to which lines of ranks go, in addition to descriptors 1 and 2: files that mpiexec writes for all ranks.
inline constexpr int kOutputFile = 1001, kErrorFile = 1002;
/// Returns a stream's number as received from another process; an unknown one becomes standard output.
constexpr int stream_of(uint64_t number) {
    return number == 2 || number == kOutputFile || number == kErrorFile ? static_cast<int>(number) : 1;
}

}  // namespace starling::launch
