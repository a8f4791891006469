// Error classes and codes: the standard's and those that the application adds (MPI 5.0 sections 9.4
// and 9.5).
#pragma once

#include <string>
#include <string_view>

#include "mpi.h"

namespace starling::comm {

// All of these are thread-safe, before MPI_Init and after MPI_Finalize too.

/// "MPI_ERR_RANK"; "MPI_ERR_UNKNOWN" for what is no class of the standard.
const char* class_name(int error_class);

/// True for MPI_SUCCESS, the standard's classes and what was added and not removed.
bool is_error_code(int code);
/// The class a code belongs to; of a class itself. MPI_ERR_UNKNOWN for what is no code.
int class_of(int code);
/// The sentence for a code: the standard's or the application's, empty if it set none.
std::string text_of(int code);

/// The highest class or code in use: MPI_LASTUSEDCODE.
int last_used_code();

int add_class();             ///< a new class
int add_code(int of_class);  ///< a new code of an existing class
/// These give MPI_ERR_ARG with failure_text() for what the application did not add.
int set_text(int code, std::string_view text);
int remove_text(int code);
int remove_class(int error_class);  ///< its codes and its string must have been removed
int remove_code(int code);          ///< its string must have been removed

}  // namespace starling::comm
