// The MPI function that this thread is in. The generated entry says so (mpi/common/entry.h), and nobody else: errors are reported under
// that name, and whoever looks from outside sees who waits.
#pragma once

namespace starling {

/// "MPI_Recv", lasts for ever; null on a thread that has not called any. A function of the program's may call others: Outside
/// (base/lock.h) keeps the name meanwhile. Initial-exec: to set it costs three instructions and no call.
[[gnu::tls_model("initial-exec")]] extern constinit thread_local const char* calling;

}  // namespace starling
