// The name that a library has in its own file, which the loader compares with the names that other files need.
#pragma once

namespace starling {

/// Returns the SONAME of a library, in memory that the next call overwrites; null: the file is no library, or has no such name.
const char* soname_of(const char* path);

}  // namespace starling
