// Lookup of symbols in the library behind a shim.
#pragma once

namespace starling::compat {

/// Returns the address of a symbol; ends the process with an error text if there is none.
void* find_by_name(const char* name);
template <class Function>
Function find_in_library(const char* name) {
    return reinterpret_cast<Function>(find_by_name(name));
}

}  // namespace starling::compat
