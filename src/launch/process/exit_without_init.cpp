// Handles ranks that exit with 0 without calling MPI_Init. This is not a failure by itself, since not every program uses MPI. But ranks
// that do use MPI may wait for such a rank forever.
#include <algorithm>

#include "launch/common/hosts.h"
#include "launch/process/ended_look.h"
#include "launch/process/launcher.h"

namespace starling::launch {

std::string Launcher::absence_of(const LocalJob& job, uint32_t rank) const {
    return name_of(job, rank) + " on " + host_name() + " has exited with code 0 and never called MPI_Init or shmem_init";
}

void Launcher::note_absent(LocalJob& job, uint32_t rank) {
    const job::JobHeader& header = job.segment.header();
    if (header.size == 1 || job.external || std::exchange(job.absent_noted, true)) return;
    // If ranks run on other hosts, only the root can find out whether a rank waits for this one.
    if (header.local_ranks != header.size) return superior_->absent(job, rank, absence_of(job, rank));
    start_wait_checks(loop_, *this,
                      {.job = job.id(),
                       .longest = std::chrono::seconds(30),
                       .state = [this, id = job.id()] { return check_of(id); },
                       .hosts = {},
                       .found = [this, id = job.id(), rank] { fail_for_absent(*find_job(id), rank); }});
}

NextCheck Launcher::check_of(job::JobId id) {
    const LocalJob* job = find_job(id);
    if (!job || job->failing || job->running == 0) return NextCheck::never;
    const bool anybody = std::any_of(job->ranks.begin(), job->ranks.end(), [&](const LocalRank& rank) {
        const auto index = static_cast<size_t>(&rank - job->ranks.data());
        return job->segment.cell(job->rank_of(index)).state.load(std::memory_order_acquire) == job::RankState::initialized;
    });
    return anybody ? NextCheck::now : NextCheck::later;
}

void Launcher::fail_for_absent(LocalJob& job, uint32_t absent) {
    const bool goes_on = job.segment.header().recovers != 0;
    RankFailure failure;
    failure.rank = absent;
    failure.sentence = absence_of(job, absent) + ", but others wait for it; " + fate_of_others(job.running, goes_on);
    if (!goes_on) end_ranks(job, static_cast<int>(absent));
    superior_->failed(job, failure);
}

}  // namespace starling::launch
