// The options of other launchers that choose how output is marked and to which files it goes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launch/common/output_style.h"

namespace starling::launch {

/// Each function returns a sentence that describes an error, or an empty string.

/// Open MPI's --output-filename DIR[:nocopy,nojobid]: DIR/<job>/rank.<rank>/stdout and stderr.
std::string read_output_directory(std::string_view text, OutputStyle& out);
/// Open MPI 5's --output WORD,...; sets `tags` for tag, and adds a sentence to `notes` for words that have no effect.
std::string read_output_words(std::string_view text, OutputStyle& out, bool& tags, std::vector<std::string>& notes);
/// Hydra's -outfile-pattern and -errfile-pattern, whose output goes only to the file.
std::string read_file_pattern(const std::string& pattern, std::string OutputStyle::*file, OutputStyle& out);

}  // namespace starling::launch
