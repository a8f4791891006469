// The path of the configuration file, for tools that show where settings come from. read_config() (base/config.h) reads the file.
#pragma once

#include <cstddef>

namespace starling {

/// Writes the path of the configuration file: STARLING_CONFIG, or ~/.config/starling.conf. Returns false if no file is to be read, with
/// STARLING_CONFIG=none or without HOME. Whether the file exists is not checked.
bool config_file_path(char* path, size_t size);

}  // namespace starling
