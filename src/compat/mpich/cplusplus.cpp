// What MPICH's library of C++ bindings (libmpichcxx.so.12, libmpicxx.so.12) looks for in its libmpi beside functions of C: it stands on
// these, and what needs MPICH's inside is told so.
#include <cstdio>
#include <cstdlib>

#include "compat/convert.h"

namespace {

[[noreturn]] void refuse(const char* binding) {
    std::fprintf(
        stderr,
        "starling: %s of MPICH's C++ bindings needs the inside of MPICH's own library, which its shim does not have: use the "
        "function of C\n",
        binding);
    starling::compat::library.Abort(MPI_COMM_WORLD, 1);
    std::abort();
}

}  // namespace

extern "C" {

#define REFUSED(symbol, binding) \
    [[gnu::visibility("default")]] void symbol() { refuse(binding); }
REFUSED(MPII_Op_set_cxx, "MPI::Op::Init")
REFUSED(MPII_Keyval_set_proxy, "Create_keyval")
REFUSED(MPII_Errhandler_set_cxx, "Create_errhandler")

}  // extern "C"
