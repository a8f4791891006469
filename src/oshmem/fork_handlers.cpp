// A child made by fork does not share the program's variables with its parent, though neighbours do (src/shmem/static_variables.h).
#include <pthread.h>

#include "shmem/runtime_abi.h"

namespace starling::oshmem {

namespace {

void in_parent() { shmem::starling_shmem_after_fork(false); }
void in_child() { shmem::starling_shmem_after_fork(true); }

/// At load: handlers run next to the fork if they were registered before all others, so those of the program, which may change
/// variables, find them as they have to be. The runtime itself has no such constructor, as it may be several ranks.
[[gnu::constructor]] void register_handlers() {
    shmem::starling_shmem_near.forks = pthread_atfork(shmem::starling_shmem_before_fork, in_parent, in_child) == 0;
}

}  // namespace

}  // namespace starling::oshmem
