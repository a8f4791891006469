// Files of commands: -configfile (MPI 5.0 section 11.5) and --app.
#pragma once

#include <string>
#include <vector>

namespace starling::launch {

/// Reads a file whose lines are the commands that a command line separates by ':'. A line that begins with '#' is a comment, and a line that
/// ends with '\' continues. Words may be quoted as in a shell. Adds the words of all commands, with ':' between them, to `out`. Returns an
/// empty string, or a sentence that describes the error with file and line.
std::string read_config_file(const std::string& path, std::vector<std::string>& out);

}  // namespace starling::launch
