// The library's life: it runs from its first user, MPI_Init or a session, to the end of the last of them. The order in which rooms
// start and stop is known here alone.
#pragma once

#include <atomic>
#include <cstdint>

namespace starling::runtime {

/// Where the process is between start and end.
enum class Phase : uint8_t { before, running, finalized };
extern std::atomic<Phase> phase;

/// Gives the variables the values of file and environment: the first call does. Thread-safe.
void read_settings();

/// One more user, with threads as `level` (MPI_THREAD_...) says: starts the library if it does not run. MPI_ERR_OTHER with
/// failure_text() if it can't. Not while holding the library's lock, as release().
int acquire(int level);
/// One user less. The last one waits for what others have still to read; the library stops then, and if one of its users has gone
/// for good it does not start again.
void release(bool for_good);

/// The highest level that a user has asked for.
int thread_level();
/// Whether this is the thread that started the library.
bool is_main_thread();

/// A child made by fork has all that its parent had in memory, but is not the rank: what the parent shares with others is not
/// the child's to finish. (Its exit handlers may well call MPI_Finalize.)
bool is_forked_child();

/// Ends the job with this exit code.
[[noreturn]] void abort(int code);
/// The same, as a success where the code says so (0).
[[noreturn]] void end_job(int code);

}  // namespace starling::runtime
