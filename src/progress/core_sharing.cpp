#include "progress/core_sharing.h"

#include <sched.h>

#include <atomic>

#include "base/state.h"
#include "job/places.h"
#include "link/host_memory.h"
#include "link/job.h"
#include "progress/core_loads.h"

namespace starling::progress {

namespace {

using job::CpuLocation;

STARLING_STATE std::atomic<uint32_t>* own = nullptr;
STARLING_STATE uint32_t own_index = 0;  ///< index of this process among the ranks of this host

void write_down(uint32_t word) {
    if (own && own->load(std::memory_order_relaxed) != word) own->store(word, std::memory_order_relaxed);
}

uint32_t here() {
    const int cpu = sched_getcpu();
    return cpu < 0 ? CpuLocation::kNowhere : CpuLocation::on(static_cast<uint32_t>(cpu));
}

/// Visits the table entries of all other known processes on this host, until `visit(word, before)` returns true. `before`: that process
/// precedes this one, by job and rank. Returns whether a visit returned true.
template <class F>
bool any_other(F&& visit) {
    const link::Job* const mine = link::self().job;
    const job::JobId my_id = mine->address().id;
    for (size_t i = 0; link::Job* job = link::job_at(i); ++i) {
        if (!job->mapped() || job->dead()) continue;
        const job::JobSegment& segment = job->segment();
        const job::JobId id = job->address().id;
        for (uint32_t index = 0; index < segment.header().local_ranks; ++index) {
            if (job == mine && index == own_index) continue;
            const bool before = id != my_id ? id < my_id : index < own_index;
            if (visit(segment.place(index).load(std::memory_order_relaxed), before)) return true;
        }
    }
    return false;
}

/// Moves this thread to the core, then restores its affinity.
bool move_to(uint32_t cpu, const cpu_set_t& usable) {
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(cpu, &only);
    if (sched_setaffinity(0, sizeof only, &only) != 0) return false;
    sched_setaffinity(0, sizeof usable, &usable);
    return true;
}

}  // namespace

void claim_entry() {
    const link::Process& me = link::self();
    job::JobSegment& segment = me.job->segment();
    own_index = segment.local_index(me.rank);
    own = &segment.place(own_index);
    job::Doorbell& doorbell = link::SegmentRegion(segment.region(me.rank)).doorbell();
    doorbell.place_distance = reinterpret_cast<char*>(own) - reinterpret_cast<char*>(&doorbell);
    // Return to the core that the launcher chose; the kernel may have moved this process since. That core is free, as far as known.
    const uint32_t planned = own->load();
    cpu_set_t usable;
    if (planned != CpuLocation::kNowhere && planned != here() && sched_getaffinity(0, sizeof usable, &usable) == 0 &&
        CPU_ISSET(planned - 1, &usable))
        move_to(planned - 1, usable);
    write_down(here());
}

void leave_place() { write_down(CpuLocation::kNowhere); }

uint32_t own_core() { return here(); }

Company find_company(uint32_t cpu, bool contested) {
    write_down(contested ? cpu | CpuLocation::kContested : cpu);
    Company company{};
    if (!own || cpu == CpuLocation::kNowhere) return company;
    // Search for a neighbour that has found unknown threads; any other neighbour is only recorded.
    company.contested = any_other([&](uint32_t other, bool) {
        if (CpuLocation::where(other) == cpu) company.neighbour = true;
        return other == (cpu | CpuLocation::kContested);
    });
    return company;
}

bool move_to_emptier_core() {
    const uint32_t word = here();
    cpu_set_t usable;
    const auto shares = [word](uint32_t other, bool before) { return before && CpuLocation::where(other) == word; };
    if (word == CpuLocation::kNowhere || !any_other(shares)) return false;
    if (sched_getaffinity(0, sizeof usable, &usable) != 0) return false;
    CoreLoads loads;
    const auto count_others = [&loads] {
        loads = {};
        any_other([&loads](uint32_t other, bool) { return loads.add(other), false; });
    };
    count_others();
    for (uint32_t i = 0; i < CPU_SETSIZE; ++i) {
        const uint32_t cpu = (word + i) % CPU_SETSIZE;  // the search starts with the next core
        if (!CPU_ISSET(cpu, &usable) || !loads.should_move(word - 1, cpu)) continue;
        // Publish the move before it is made, and check again: two processes that choose the same core see each other, and neither moves.
        own->store(CpuLocation::on(cpu));
        std::atomic_thread_fence(std::memory_order_seq_cst);
        count_others();
        const bool moved = loads.should_move(word - 1, cpu) && move_to(cpu, usable);
        write_down(here());
        return moved;
    }
    return false;
}

void mark_self_asleep() {
    if (own) own->fetch_or(CpuLocation::kAsleep, std::memory_order_relaxed);
}

void mark_self_awake() {
    if (!own) return;
    const uint32_t word = here();
    // If the core is unchanged, the earlier finding about unknown threads stays valid until the next check.
    const uint32_t said = own->load(std::memory_order_relaxed);
    write_down((said & CpuLocation::kCpu) == word ? word | (said & CpuLocation::kContested) : word);
}

}  // namespace starling::progress
