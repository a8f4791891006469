// A rank that ends well and has not called MPI_Init. That is no failure by itself, since not every program is one of MPI; but those
// that are may wait for it, and would for ever.
#include <algorithm>
#include <cstdio>

#include "launch/common/hosts.h"
#include "launch/process/explanation.h"
#include "launch/process/launcher.h"

namespace starling::launch {

namespace {
constexpr std::chrono::milliseconds kFirstLook{1000}, kLastLook{30000};  // twice as long from one to the next
constexpr int kQuietSeconds = 1;
}  // namespace

std::string Launcher::absence_of(const Job& job, uint32_t rank) const {
    return name_of(job, rank) + " on " + host_name() + " has exited with code 0 and never called MPI_Init or shmem_init";
}

void Launcher::note_absent(Job& job, uint32_t rank) {
    const job::JobHeader& header = job.segment.header();
    if (header.size == 1 || job.external || std::exchange(job.absent_noted, true)) return;
    // Who waits for whom is seen from where all are, or by the root.
    if (header.local_ranks == header.size)
        look_for_who_waits(job.id(), rank, kFirstLook);
    else
        superior_->absent(job, rank, absence_of(job, rank));
}

void Launcher::look_for_who_waits(job::JobId id, uint32_t absent, std::chrono::milliseconds wait) {
    loop_.after(wait, [this, id, absent, wait] {
        const Job* job = find_job(id);
        if (!job || job->failing || job->running == 0) return;
        const auto again = [this, id, absent, wait] { look_for_who_waits(id, absent, std::min(2 * wait, kLastLook)); };
        const bool anybody = std::any_of(job->ranks.begin(), job->ranks.end(), [&](const Rank& rank) {
            const auto index = static_cast<size_t>(&rank - job->ranks.data());
            return job->segment.cell(job->rank_of(index)).state.load(std::memory_order_acquire) == job::RankState::initialized;
        });
        if (!anybody) return again();
        char name[20];
        std::snprintf(name, sizeof name, "%016llx", static_cast<unsigned long long>(id));
        explain(loop_, *this, name, kQuietSeconds, {}, [this, id, absent, again](const std::string& text) {
            Job* found = find_job(id);
            if (!found || found->failing || found->running == 0) return;
            if (text.find("which has ended") == std::string::npos) return again();
            fail_for_absent(*found, absent);
        });
    });
}

void Launcher::fail_for_absent(Job& job, uint32_t absent) {
    const bool goes_on = job.segment.header().recovers != 0;
    Failure failure;
    failure.rank = absent;
    failure.sentence = absence_of(job, absent) + ", but others wait for it; " + (goes_on ? "the other " : "ending the other ") +
                       std::to_string(job.running) + (goes_on ? " go on" : "");
    if (!goes_on) end_ranks(job, static_cast<int>(absent));
    superior_->failed(job, failure);
}

}  // namespace starling::launch
