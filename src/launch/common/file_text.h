// Reads small files, such as those of /proc.
#pragma once

#include <string>

namespace starling::launch {

/// Reads a whole file. Returns false, with errno, if it cannot be opened or read to its end.
bool read_text(const std::string& path, std::string& out);

/// Returns the text of a file, as far as it can be read.
std::string text_of_file(const std::string& path);

}  // namespace starling::launch
