// The scope in which every function of runtime_abi.h runs, and the functions that report errors.
#pragma once

#include "base/current_function.h"
#include "base/lock.h"

namespace starling::shmem {

/// Prints "PE 2 of 4: shmem_long_put: <text>" and ends the job.
[[noreturn, gnu::format(printf, 1, 2), gnu::cold]] void complain(const char* format, ...);
/// Prints the text of this thread's last error in the runtime as complain() does, and ends the job.
[[noreturn, gnu::cold]] void complain_of_failure();
/// Prints the text only with STARLING_VERBOSE=1; for errors that the function's result reports.
[[gnu::format(printf, 1, 2), gnu::cold]] void mention(const char* format, ...);

/// Enters the library for a scope, in the function `name`. Ends the job if OpenSHMEM is not initialized.
class ShmemCall {
  public:
    explicit ShmemCall(const char* name);

  private:
    Lock lock_;
};

}  // namespace starling::shmem
