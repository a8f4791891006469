// Loads the library behind a shim from its installation, and finds its functions by name. The shim's functions have the same names, so the
// library is loaded with RTLD_LOCAL.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

#include "compat/convert.h"
#include "compat/nonstandard.h"
#include "compat/symbols.h"

namespace starling::compat {

Library library;

namespace {

constexpr const char* kLibrary = "libmpi_abi.so.1";  // found by the shim's own path, $ORIGIN/../..

[[noreturn]] void give_up(const char* what, const char* why) {
    std::fprintf(stderr, "starling: %s requires %s, %s (%s); is the installation complete?\n", abi::kShim, kLibrary, what, why);
    std::exit(127);
}

void* handle = nullptr;

[[gnu::constructor(101)]] void open() {
    handle = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
    if (!handle) give_up("which can't be loaded", dlerror());
#define FIND(name) library.name = find_in_library<decltype(library.name)>("PMPI_" #name);
    COMPAT_FUNCTIONS(FIND)
#undef FIND
#define FIND(name) library.name = find_in_library<decltype(library.name)>("PMPIX_" #name);
    COMPAT_EXTENSIONS(FIND)
#undef FIND
    add_nonstandard(library);
    if (find_in_library<decltype(&starling_set_foreign)>("starling_set_foreign")(&callers)) return;
    std::fprintf(stderr,
                 "starling: this process has loaded libraries of two MPIs, %s and another one, whose handles differ (`starling "
                 "doctor PROGRAM` shows which library requires which MPI)\n",
                 abi::kShim);
    std::exit(127);
}

}  // namespace

void* find_by_name(const char* name) {
    void* const found = dlsym(handle, name);
    if (!found) give_up("which lacks a function", name);
    return found;
}

}  // namespace starling::compat
