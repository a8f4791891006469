// Locks: a queue (Mellor-Crummey and Scott), so who waits does so at its own memory, and all have it in the order of asking.
//
// A lock is a symmetric long. Its upper half on PE 0 names the last in the queue; its lower half, on each PE, is that PE's own place.
#include "base/state.h"
#include "comm/comm.h"
#include "progress/engine.h"
#include "progress/wait_report.h"
#include "shmem/access.h"
#include "shmem/entry.h"

namespace starling::shmem {

namespace {

constexpr uint32_t kWaits = 1u << 31;  ///< in a PE's place: somebody has the lock; below it, who is next + 1

/// One PE's half words of a lock.
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

/// The lock comes from who is before this PE in the queue, or has it.
STARLING_STATE int before_this = 0;
constexpr progress::WaitSite kForLock{nullptr, progress::Expected::unrung, [](const void*, progress::WaitReporter& teller) {
                                          const link::Process& process = remote_pe(before_this).process;
                                          WaitReportPage::Operation lock{};
                                          lock.kind = WaitReportPage::Kind::lock;
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
    const Call call(name);
    const Words words = words_of(lock);
    __atomic_store_n(own_place(words), kWaits, __ATOMIC_RELEASE);
    const uint32_t before = exchange(0, words.last, me());
    if (before == 0) return;
    if (before == me()) complain("the lock at %p is this PE's already", static_cast<void*>(lock));
    const uint32_t next = me();
    update(remote_pe(static_cast<int>(before) - 1), words.place, Element::uint32, Operator::bor, &next, nullptr);
    before_this = static_cast<int>(before) - 1;
    wait_for_own(
        words, [](void* place) { return (__atomic_load_n(static_cast<uint32_t*>(place), __ATOMIC_ACQUIRE) & kWaits) == 0; },
        &kForLock);
}

void starling_shmem_clear_lock(const char* name, long* lock) {
    const Call call(name);
    const Words words = words_of(lock);
    quiet_all();
    const auto next_of = [&] { return __atomic_load_n(own_place(words), __ATOMIC_ACQUIRE) & ~kWaits; };
    if (next_of() == 0) {
        const uint32_t last = swap_if(0, words.last, me(), 0);
        if (last == me()) return __atomic_store_n(own_place(words), 0, __ATOMIC_RELEASE);
        if (last == 0) complain("the lock at %p is not this PE's", static_cast<void*>(lock));
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
    const Call call(name);
    const Words words = words_of(lock);
    uint32_t place = 0;
    // Before the lock is ours others must find a place that they can wait behind. It may be ours already, without a trace in its place: then
    // who is next may write its name there at any moment.
    if (!__atomic_compare_exchange_n(own_place(words), &place, kWaits, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) return 1;
    if (swap_if(0, words.last, 0, me()) == 0) return 0;
    __atomic_fetch_and(own_place(words), ~kWaits, __ATOMIC_ACQ_REL);
    progress::test();
    return 1;
}
}  // extern "C"

}  // namespace starling::shmem
