// The end of a job because of an MPI error that the program does not handle (MPI_ERRORS_ARE_FATAL), or of an OpenSHMEM error. A call of
// MPI_Abort is runtime::abort() instead, since launchers name the two differently.
#pragma once

namespace starling::runtime {

/// Ends the job with this exit code, always as a failure.
[[noreturn]] void abort_by_error(int code);

}  // namespace starling::runtime
