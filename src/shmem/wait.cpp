// Waiting for symmetric memory that others write.
#include "progress/flags.h"

#include "progress/idle.h"
#include "shmem/access.h"
#include "shmem/call.h"

namespace starling::shmem {

namespace {

/// A neighbour's answer is here in a fraction of a microsecond, or not for long.
constexpr int kSpins = 100;

constexpr progress::WaitSite kMemory{nullptr, progress::Expected::unrung};

}  // namespace

extern "C" {

void starling_shmem_wait(const char* name, bool (*ready)(void*), void* argument) {
    const Call call(name);
    wake_stored();
    for (int i = progress::core_is_crowded() ? kSpins - 1 : 0; i < kSpins; ++i) {
        if (ready(argument)) return;
        __builtin_ia32_pause();
    }
    progress::wait_for_flags(ready, argument, kMemory);
}

void starling_shmem_poll() {
    const Lock lock;
    if (world().phase != Phase::running) return;
    wake_stored();
    progress::test();
}
}  // extern "C"

}  // namespace starling::shmem
