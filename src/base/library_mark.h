// How Starling's libmpi_abi.so.1 is told from another vendor's, which has the same name and interface.
#pragma once

namespace starling {

/// Name of an ELF note in the library's first page (mpi/library_mark.cpp), with the terminating null.
inline constexpr char kLibraryMark[] = "Starling's library";

/// Variable with the folder of the libraries that mpiexec's processes get in place of others (compat/redirect).
inline constexpr const char* kLibrariesVariable = "STARLING_LIBRARIES";

}  // namespace starling
