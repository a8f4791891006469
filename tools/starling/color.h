// Colors on a terminal, which the user can turn off for all programs: https://no-color.org.
#pragma once

#include <cstdlib>

namespace starling {

/// Returns false if NO_COLOR is set and not empty. The caller checks whether it writes to a terminal.
inline bool may_color() {
    const char* const no = std::getenv("NO_COLOR");
    return !no || !*no;
}

}  // namespace starling
