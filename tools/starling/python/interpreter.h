// Asks a Python interpreter where its mpi4py is, and finds out which MPI library that mpi4py would load.
#pragma once

#include <cstdint>
#include <string>

namespace starling {

/// A Python interpreter and its mpi4py.
struct Interpreter {
    std::string program;   ///< as the user wrote it
    std::string prefix;    ///< its sys.prefix: the folder of a virtual environment, or that of the installation
    std::string packages;  ///< folder where pip installs packages, which may have .pth files
    std::string mpi4py;    ///< folder of mpi4py; empty: it has none
};

/// Runs the interpreter. Returns an empty string, or an error as a sentence.
std::string ask_interpreter(const std::string& program, Interpreter& found);

/// How an mpi4py finds its MPI library.
enum class Mpi4pyKind : uint8_t {
    chooses,   ///< a wheel that has a module for each binary interface, and loads the library that MPI4PY_LIBMPI names
    linked,    ///< linked with another MPI's library, which only the loader's path can replace
    starling,  ///< linked with Starling's library, which it finds
    unknown,   ///< linked with no MPI library that Starling replaces
};

struct Mpi4py {
    Mpi4pyKind kind = Mpi4pyKind::unknown;
    std::string linked_with;  ///< file name of the MPI library, such as "libmpi.so.40"; empty: none
    std::string library;      ///< Starling's library or shim in place of it; empty if kind is unknown
};

/// Examines the files of an mpi4py's folder.
Mpi4py examine_mpi4py(const std::string& folder);

}  // namespace starling
