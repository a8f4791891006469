// What Open MPI's library of C++ bindings (libmpi_cxx.so.40) looks for in its libmpi. Many programs and libraries are linked with it and
// call nothing of it, since mpicxx adds it: it has to be loaded. What its inner functions would do is done by the library of which they
// are: bindings that only call C work, and where one needs more its process is told so.
#include <cstddef>
#include <cstdio>
#include <cstdlib>

#include "compat/convert.h"

namespace {

[[noreturn]] void refuse(const char* binding) {
    std::fprintf(
        stderr,
        "starling: %s of Open MPI's C++ bindings needs the inside of Open MPI's own library, which its shim does not have: use "
        "the function of C\n",
        binding);
    starling::compat::library.Abort(MPI_COMM_WORLD, 1);
    std::abort();
}

}  // namespace

extern "C" {

// Objects of which nobody but it reads anything: no code of an error is Open MPI's inner one.
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
