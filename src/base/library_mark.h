// How Starling's libmpi_abi.so.1 and its shims are told from other vendors' libraries, which have the same names and interfaces.
#pragma once

namespace starling {

/// Name of an ELF note in the first page of the library and of the shims (mpi/library_mark.cpp), with the terminating null.
inline constexpr char kLibraryMark[] = "Starling's library";

/// Variable with the folder of the libraries that mpiexec's processes get in place of others (compat/redirect).
inline constexpr const char* kLibrariesVariable = "STARLING_LIBRARIES";

}  // namespace starling
