// Variables whose defaults are shorter in jobs that continue when a process dies (mpiexec --enable-recovery): the survivors of such a job
// wait for the news of a death, while the other jobs only end a little later.
#pragma once

#include <cstddef>
#include <cstdint>

namespace starling {

/// One variable of the table of recovery defaults.
struct RecoveryDefault {
    const char* name;
    int64_t value;  ///< default with --enable-recovery, in the variable's unit
};

/// Returns all rows of the table.
const RecoveryDefault* recovery_defaults(size_t& count);

/// Returns the variable's row; nullptr if its default is the same in all jobs.
const RecoveryDefault* find_recovery_default(const char* name);

/// Returns the value of a variable of the table for a job with --enable-recovery: the user's value, or the recovery default if the user has
/// set none. Call it after read_config(). Thread-safe as long as no thread sets variables.
int64_t value_with_recovery(const char* name);

/// Replaces the value of a variable of the table by value_with_recovery(). Call it before other threads start.
void use_recovery_default(const char* name);

}  // namespace starling
