// Waits for changes of symmetric memory by other PEs.
#include "comm/comm.h"
#include "link/host_memory.h"
#include "progress/blocking_wait.h"
#include "progress/flag_wait.h"
#include "progress/wait_report.h"
#include "shmem/access.h"
#include "shmem/entry.h"

namespace starling::shmem {

namespace {

/// Number of checks before a wait sleeps. A neighbor answers within a fraction of a microsecond or takes much longer, so more checks do not
/// help.
constexpr int kSpins = 100;

/// Wait site for memory that any other PE may change.
constexpr progress::WaitSite kMemory{nullptr, progress::Expected::unrung, [](const void*, progress::WaitReporter& teller) {
                                         WaitReportPage::OperationEntry change{};
                                         change.kind = WaitReportPage::OperationKind::memory;
                                         change.rank = WaitReportPage::kAnyRank;
                                         change.context = comm::world()->context();
                                         teller.waits_for(change, nullptr);
                                     }};

/// Increments this PE's `watching` for a scope; neighbors then ring the doorbell after a store.
class Watching {
  public:
    Watching() : watching_(link::SegmentRegion(link::self().job->segment().region(link::self().rank)).symmetric().watching) {
        watching_.fetch_add(1);
    }
    ~Watching() { watching_.fetch_sub(1); }
    Watching(const Watching&) = delete;
    Watching& operator=(const Watching&) = delete;

  private:
    std::atomic<uint32_t>& watching_;
};

/// Condition of a wait in a job that survives failures of its processes. A wait returns no error, and nothing indicates which PE it waits
/// for. So it ends when any process fails.
struct Mortal {
    bool (*ready)(void*);
    void* argument;
    bool is_over() const {
        return ready(argument) || link::self().job->segment().header().failures.load(std::memory_order_acquire) > 0;
    }
};

uint32_t dead_pe() {
    const job::JobSegment& segment = link::self().job->segment();
    uint32_t pe = 0;
    while (pe + 1 < segment.header().size && job::PortWord::of(segment.port(pe).load()).state != job::PortWord::failed) ++pe;
    return pe;
}

}  // namespace

void wait_for_memory(bool (*ready)(void*), void* argument, const progress::WaitSite* site) {
    for (int i = progress::core_is_crowded() ? kSpins - 1 : 0; i < kSpins; ++i) {
        if (ready(argument)) return;
        __builtin_ia32_pause();
    }
    const Watching watching;
    const progress::WaitSite& where = site ? *site : kMemory;
    if (!link::self().job->segment().header().recovers) [[likely]]
        return progress::wait_for_flags(ready, argument, where);
    Mortal mortal{ready, argument};
    progress::wait_for_flags([](void* wait) { return static_cast<Mortal*>(wait)->is_over(); }, &mortal, where);
    if (!ready(argument)) complain("PE %u has died, and this wait may depend on a store by it", dead_pe());
}

extern "C" {

void starling_shmem_wait(const char* name, bool (*ready)(void*), void* argument) {
    const ShmemCall call(name);
    wake_stored();
    wait_for_memory(ready, argument);
}

void starling_shmem_check(const char* name, const char* what, const void* address, size_t bytes) {
    const ShmemCall call(name);
    if (bytes > 0) located(what, address, bytes);
}

void starling_shmem_poll() {
    const Lock lock;
    if (world().phase != ShmemPhase::running) return;
    wake_stored();
    progress::test();
}
}  // extern "C"

}  // namespace starling::shmem
