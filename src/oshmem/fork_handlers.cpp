// Fork handlers that give a child its own copy of the program's variables, which the parent shares with its neighbors
// (src/shmem/static_variables.h).
#include <pthread.h>

#include "shmem/runtime_abi.h"

namespace starling::oshmem {

namespace {

void in_parent() { shmem::starling_shmem_after_fork(false); }
void in_child() { shmem::starling_shmem_after_fork(true); }

/// Registers the handlers at load time. Handlers registered first run closest to the fork, so the program's own handlers, which may change
/// variables, run while the variables are shared as usual. The runtime has no such constructor, because it may contain several ranks.
[[gnu::constructor]] void register_handlers() {
    shmem::starling_shmem_near.forks = pthread_atfork(shmem::starling_shmem_before_fork, in_parent, in_child) == 0;
}

}  // namespace

}  // namespace starling::oshmem
