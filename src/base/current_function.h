// The MPI function that this thread executes. Only the generated entry point sets it (mpi/common/entry.h). Errors are reported under that
// name, and tools that watch the process read it.
#pragma once

namespace starling {

/// The function's name, for example "MPI_Recv", a string with static lifetime; null on a thread that has called none. A callback of the
/// program may call further functions: OutsideLibrary (base/lock.h) saves and restores the name. With the initial-exec model, setting it
/// costs three instructions and no call.
[[gnu::tls_model("initial-exec")]] extern constinit thread_local const char* calling;

}  // namespace starling
