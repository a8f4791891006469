// What a shim finds in the library behind it by name.
#pragma once

namespace starling::compat {

/// Ends the process with a sentence where there is none.
void* find_by_name(const char* name);
template <class Function>
Function find_in_library(const char* name) {
    return reinterpret_cast<Function>(find_by_name(name));
}

}  // namespace starling::compat
