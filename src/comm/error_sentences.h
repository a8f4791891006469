// Sentences of failed calls. A call that returns an error returns a code that stands for its sentence, so that MPI_Error_string can report
// it later, in any thread (MPI 5.0 section 9.4 leaves error codes to the implementation). The latest kSentences sentences are kept. The
// class is part of the code, so MPI_Error_class works for older codes too, whose text is that of their class.
#pragma once

#include <optional>
#include <string>

namespace starling::comm {

/// Number of sentences that a process keeps.
inline constexpr int kSentences = 256;

/// The sentence of a failed call, and the MPI function that has failed (null: unknown).
struct FailedCall {
    const char* function;
    std::string sentence;
};

/// Keeps failure_text() as the sentence of a new code, and returns that code. Returns `error` itself if it needs no sentence of its own:
/// for MPI_SUCCESS, without a text, for codes of the program and codes that have a sentence, with STARLING_ERROR_CODES=classes, and without
/// memory. `function` must live as long as the process. Thread-safe.
[[gnu::cold]] int keep_sentence(int error, const char* function);

/// Returns true for the codes that keep_sentence() has made, even if their sentences have been overwritten. Thread-safe.
bool has_kept_sentence(int code);
/// Returns the error class of a code for which has_kept_sentence() is true.
int class_of_sentence(int code);
/// Returns the call that failed with this code; nothing if the code has no sentence or has lost it. Thread-safe.
std::optional<FailedCall> failed_call(int code);

}  // namespace starling::comm
