// The check of `ulimit -s` with which each program of the launcher begins.
#pragma once

#include <string>

namespace starling::launch {

/// Returns a sentence if the stack of this process is limited to less than the launcher needs; otherwise an empty string.
std::string stack_problem();

}  // namespace starling::launch
