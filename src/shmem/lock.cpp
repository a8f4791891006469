// Locks as queues (Mellor-Crummey and Scott): a PE waits at a word in its own memory, and the PEs get the lock in the order of their
// requests.
//
// A lock is a symmetric long. The upper half on PE 0 names the last PE in the queue. The lower half on each PE is the PE's own queue entry.
#include "base/state.h"
#include "comm/comm.h"
#include "progress/engine.h"
#include "progress/wait_report.h"
#include "shmem/access.h"
#include "shmem/entry.h"

namespace starling::shmem {

namespace {

/// Flag in a PE's queue entry: the PE waits, because another PE holds the lock; lower bits: number of the next PE + 1.
constexpr uint32_t kWaits = 1u << 31;

/// The two halves of a lock word: `place` is a PE's own entry, `last` the end of the queue.
struct Words {
    Spot place, last;
};

Words words_of(const long* lock) {
    const Spot spot = located("lock", lock, sizeof *lock);
    return {spot, {spot.area, spot.offset + 4}};
}

uint32_t* own_place(const Words& words) { return reinterpret_cast<uint32_t*>(own_memory(words.place)); }

uint32_t me() { return static_cast<uint32_t>(world().me) + 1; }

uint32_t exchange(int pe, const Spot& spot, uint32_t value) {
    uint32_t old = 0;
    update(remote_pe(pe), spot, Element::uint32, Operator::replace, &value, &old);
    return old;
}

uint32_t swap_if(int pe, const Spot& spot, uint32_t from, uint32_t to) {
    uint32_t old = 0;
    compare_swap(default_context(), remote_pe(pe), spot, Element::uint32, &from, &to, &old, false);
    return old;
}

/// PE before this one in the queue, which will pass the lock on; for the wait report.
STARLING_STATE int before_this = 0;
constexpr progress::WaitSite kForLock{nullptr, progress::Expected::unrung, [](const void*, progress::WaitReporter& teller) {
                                          const link::Process& process = remote_pe(before_this).process;
                                          WaitReportPage::OperationEntry lock{};
                                          lock.kind = WaitReportPage::OperationKind::lock;
                                          lock.rank = before_this;
                                          lock.peer = process.rank;
                                          lock.peer_job = process.job->address().id;
                                          lock.context = comm::world()->context();
                                          teller.waits_for(lock, nullptr);
                                      }};

void wait_for_own(const Words& words, bool (*ready)(void*), const progress::WaitSite* site = nullptr) {
    wait_for_memory(ready, own_place(words), site);
}

}  // namespace

extern "C" {

void starling_shmem_set_lock(const char* name, long* lock) {
    const ShmemCall call(name);
    const Words words = words_of(lock);
    __atomic_store_n(own_place(words), kWaits, __ATOMIC_RELEASE);
    const uint32_t before = exchange(0, words.last, me());
    if (before == 0) return;
    if (before == me()) complain("this PE already holds the lock at %p", static_cast<void*>(lock));
    const uint32_t next = me();
    update(remote_pe(static_cast<int>(before) - 1), words.place, Element::uint32, Operator::bor, &next, nullptr);
    before_this = static_cast<int>(before) - 1;
    wait_for_own(
        words, [](void* place) { return (__atomic_load_n(static_cast<uint32_t*>(place), __ATOMIC_ACQUIRE) & kWaits) == 0; },
        &kForLock);
}

void starling_shmem_clear_lock(const char* name, long* lock) {
    const ShmemCall call(name);
    const Words words = words_of(lock);
    quiet_all();
    const auto next_of = [&] { return __atomic_load_n(own_place(words), __ATOMIC_ACQUIRE) & ~kWaits; };
    if (next_of() == 0) {
        const uint32_t last = swap_if(0, words.last, me(), 0);
        if (last == me()) return __atomic_store_n(own_place(words), 0, __ATOMIC_RELEASE);
        if (last == 0) complain("this PE does not hold the lock at %p", static_cast<void*>(lock));
        wait_for_own(words, [](void* place) {
            return (__atomic_load_n(static_cast<uint32_t*>(place), __ATOMIC_ACQUIRE) & ~kWaits) != 0;
        });
    }
    const int next = static_cast<int>(next_of()) - 1;
    __atomic_store_n(own_place(words), 0, __ATOMIC_RELEASE);
    const uint32_t mine = ~kWaits;
    update(remote_pe(next), words.place, Element::uint32, Operator::band, &mine, nullptr);
}

int starling_shmem_test_lock(const char* name, long* lock) {
    const ShmemCall call(name);
    const Words words = words_of(lock);
    uint32_t place = 0;
    // The waiting flag must be set before this PE enters the queue, because a PE may then queue behind it at once. If the entry is not 0,
    // this PE uses the lock already. Even with an entry of 0 it may hold the lock; then the next PE may write its number there at any
    // moment, so all changes are atomic.
    if (!__atomic_compare_exchange_n(own_place(words), &place, kWaits, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) return 1;
    if (swap_if(0, words.last, 0, me()) == 0) return 0;
    __atomic_fetch_and(own_place(words), ~kWaits, __ATOMIC_ACQ_REL);
    progress::test();
    return 1;
}
}  // extern "C"

}  // namespace starling::shmem
