// Symbols that Open MPI's library of C++ bindings (libmpi_cxx.so.40) uses in libmpi. Many programs are linked with it without using it,
// because mpicxx adds it, so it must be loadable. Bindings that only call C functions work. Those that need Open MPI's internals print an
// error and abort.
#include <cstddef>
#include <cstdio>
#include <cstdlib>

#include "compat/convert.h"

namespace {

[[noreturn]] void refuse(const char* binding) {
    std::fprintf(
        stderr,
        "starling: %s of Open MPI's C++ bindings needs internals of Open MPI's own library, which this replacement does not "
        "have: use the C function\n",
        binding);
    starling::compat::library.Abort(MPI_COMM_WORLD, 1);
    std::abort();
}

}  // namespace

extern "C" {

// Objects that only the library of bindings reads. They can be zeros, because no error code here is one of Open MPI's internal codes.
#define DATA(symbol, bytes)                                   \
    [[gnu::visibility("default")]] extern char symbol[bytes]; \
    alignas(64) char symbol[bytes] = {};
DATA(ompi_errcode_intern_lastused, sizeof(int))
DATA(ompi_errcodes_intern, 256)
DATA(ompi_registered_datareps, 256)
DATA(ompi_mpi_errors_throw_exceptions, 1024)

#define REFUSED(symbol, binding) \
    [[gnu::visibility("default")]] void symbol() { refuse(binding); }
REFUSED(ompi_op_set_cxx_callback, "MPI::Op::Init")
REFUSED(ompi_attr_create_keyval, "Create_keyval")
REFUSED(ompi_errhandler_create, "Create_errhandler")
REFUSED(ompi_errhandler_invoke, "an error handler")

}  // extern "C"
