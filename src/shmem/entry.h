// What every function of the door begins with, and how errors end.
#pragma once

#include "base/current_function.h"
#include "base/lock.h"

namespace starling::shmem {

/// Tells "PE 2 of 4: shmem_long_put: <sentence>" and ends the job.
[[noreturn, gnu::format(printf, 1, 2), gnu::cold]] void complain(const char* format, ...);
/// The same with the sentence of this thread's last error in the runtime.
[[noreturn, gnu::cold]] void complain_of_failure();
/// Tells the sentence only if the user wants to hear more (STARLING_VERBOSE=1): for what has a result to say so.
[[gnu::format(printf, 1, 2), gnu::cold]] void mention(const char* format, ...);

/// Inside the library for a scope, in the function `name`. Ends the job if OpenSHMEM is not initialized.
class Call {
  public:
    explicit Call(const char* name);

  private:
    Lock lock_;
};

}  // namespace starling::shmem
