// Symbols that MPICH's library of C++ bindings (libmpichcxx.so.12, libmpicxx.so.12) uses in libmpi besides the C functions. Bindings that
// need MPICH's internals print an error and abort.
#include <cstdio>
#include <cstdlib>

#include "compat/convert.h"

namespace {

[[noreturn]] void refuse(const char* binding) {
    std::fprintf(
        stderr,
        "starling: %s of MPICH's C++ bindings needs internals of MPICH's own library, which this replacement does not have: "
        "use the C function\n",
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
