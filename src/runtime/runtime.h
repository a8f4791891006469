// The life cycle of the library, from its first user, MPI_Init or an MPI session, to the end of the last one. Only src/runtime knows the
// order in which the parts of the library start and stop.
#pragma once

#include <atomic>
#include <cstdint>

namespace starling::runtime {

/// The state of the library in this process.
enum class LibraryPhase : uint8_t { before, running, finalized };
extern std::atomic<LibraryPhase> phase;

/// Sets the variables from the configuration file and the environment at the first call. Thread-safe.
void read_settings();

/// Adds a user whose threads behave as `level` (MPI_THREAD_...) says; starts the library if it is not running. Returns MPI_ERR_OTHER with
/// failure_text() on failure. Not to be called with the library's lock held.
int acquire(int level);
/// Removes a user. The last one waits until the peers have received everything, then the library stops. If any user was released
/// `for_good`, it cannot start again. Not to be called with the library's lock held.
void release(bool for_good);

/// Returns the highest thread level that a user has asked for.
int thread_level();
/// Returns whether this is the thread that started the library.
bool is_main_thread();

/// Returns whether this process is a forked child of the rank. It has a copy of the rank's memory but is not the rank, and must not
/// finalize anything that the rank shares with other processes. (Its exit handlers may well call MPI_Finalize.)
bool is_forked_child();

/// Ends the job with this exit code, always as a failure.
[[noreturn]] void abort(int code);
/// Ends the job with this exit code, as a success if it is 0.
[[noreturn]] void end_job(int code);

}  // namespace starling::runtime
