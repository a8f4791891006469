// Functions of libraries that are loaded while the program runs.
#pragma once

#include <dlfcn.h>

namespace starling {

/// Sets `function` to the library's symbol of that name. Returns whether there is one. `library`: from dlopen(), or RTLD_DEFAULT.
/// Thread-safe.
template <class Function>
bool find_symbol(void* library, const char* name, Function*& function) {
    function = reinterpret_cast<Function*>(dlsym(library, name));
    return function != nullptr;
}

}  // namespace starling
