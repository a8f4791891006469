// Errors as values: an int that is MPI_SUCCESS (0) or one of the MPI error classes. In addition each thread keeps one sentence that says
// what happened and what to do about it.
#pragma once

#include <string_view>

namespace starling {

/// Records the sentence for the error being returned and returns `error_class`, so that a function can `return fail(MPI_ERR_RANK, "rank %d
/// is not in a communicator of %d", rank, size);`. The sentence is cut at 1023 bytes. Thread-safe: one sentence per thread.
[[gnu::format(printf, 2, 3), gnu::cold]] int fail(int error_class, const char* format, ...);

/// Returns the sentence of this thread's last fail(), empty if there was none since clear_failure().
std::string_view failure_text();
void clear_failure();

/// Returns the remedy that ends a sentence about a failed system call: "; raise `ulimit -n`" if no descriptor was left, else "".
const char* limit_remedy(int error);

/// Prints "starling: <sentence>" to standard error and aborts the process. For broken invariants only.
[[noreturn, gnu::format(printf, 1, 2), gnu::cold]] void panic(const char* format, ...);

}  // namespace starling
