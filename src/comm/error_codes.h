// Error classes and codes: the standard's, and those that the application adds (MPI 5.0 sections 9.4 and 9.5).
#pragma once

#include <string>
#include <string_view>

#include "mpi.h"

namespace starling::comm {

// All functions are thread-safe, also before MPI_Init and after MPI_Finalize.

/// Returns the name of an error class, such as "MPI_ERR_RANK"; "MPI_ERR_UNKNOWN" if the standard does not define it.
const char* class_name(int error_class);

/// Returns true for MPI_SUCCESS, the standard's classes, codes with a sentence (comm/error_sentences.h), and added codes and classes that
/// were not removed.
bool is_error_code(int code);
/// Returns the class of an error code; for a class, the class itself. MPI_ERR_UNKNOWN if it is not a code.
int class_of(int code);
/// Returns whether an error class reports the failure of a process, or the revocation that another process has decided after one.
bool is_process_failure(int error_class);
/// Returns the text of a code: the sentence of the call that failed with it, the standard's text of the class, or the text that the
/// application has set, which is empty if it set none.
std::string text_of(int code);

/// Returns the highest class or code in use: MPI_LASTUSEDCODE.
int last_used_code();

/// Returns the error of a callback, and clears failure_text(): the program chose this code, so an earlier text does not belong to it.
int without_text(int error);

int add_class();             ///< adds an error class and returns it
int add_code(int of_class);  ///< adds a code to an existing class and returns the code
/// The functions below return MPI_ERR_ARG with failure_text() for codes that the application did not add.
int set_text(int code, std::string_view text);
int remove_text(int code);
int remove_class(int error_class);  ///< removes a class, whose codes and text must have been removed
int remove_code(int code);          ///< removes a code, whose text must have been removed

}  // namespace starling::comm
