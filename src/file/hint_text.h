// Formats in which users write hints outside of their programs.
#pragma once

#include <string>
#include <string_view>

#include "comm/info.h"

namespace starling::file {

/// Reads the text of a hints file as ROMIO documents it: lines `key value`; lines that begin with # are comments. Other lines are ignored.
void read_hint_lines(std::string_view text, comm::Info& info);

/// Reads MPICH_MPIIO_HINTS as HPE Cray documents it: `pattern:key=value:key=value,pattern:...`. A pattern of shells stands for names of
/// files: whole names if it contains `/`, else their last parts. Sets the hints whose pattern fits `name`.
void read_hint_patterns(std::string_view text, const std::string& name, comm::Info& info);

}  // namespace starling::file
