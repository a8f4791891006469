// Looks for ranks that have loaded another MPI's library, and ends their job. Such a rank would be alone, whatever it computes.
#include <algorithm>

#include "job/job_segment.h"
#include "launch/process/foreign_mpi_check.h"
#include "launch/process/launcher.h"

namespace starling::launch {

namespace {

// No look follows a delay of this length or more. Each delay is 4 times the one before it.
constexpr std::chrono::milliseconds kLastLook{30000};

}  // namespace

// Looks repeatedly, because the libraries of an interpreter or a wrapper show only at run time. A program that calls MPI_Init uses
// Starling. One that has not called it after a minute most likely never will.
void Launcher::watch_for_other_library(job::JobId id, std::chrono::milliseconds wait) {
    loop_.after(wait, [this, id, wait] {
        if (look_for_other_library(id) && wait < kLastLook) watch_for_other_library(id, 4 * wait);
    });
}

// Returns whether another look is needed.
bool Launcher::look_for_other_library(job::JobId id) {
    LocalJob* job = find_job(id);
    if (!job || job->failing) return false;
    bool again = false;
    for (size_t i = 0; i < job->ranks.size(); ++i) {
        const uint32_t rank = job->rank_of(i);
        if (!job->ranks[i].running || job->segment.cell(rank).state.load(std::memory_order_acquire) != job::RankState::started)
            continue;
        again = true;
        const std::string library = other_library_in(job->ranks[i].pid);
        if (library.empty()) continue;
        RankFailure failure;
        failure.rank = rank;
        failure.sentence =
            name_of(*job, rank) + " has loaded " + library +
            ", whose processes can't find each other under Starling's mpiexec, so that each would be alone; "
            "start it with --compat auto, start it with that library's mpiexec, or set STARLING_SINGLETON=allow if "
            "that is meant; ending all " +
            std::to_string(job->running);
        end_ranks(*job, static_cast<int>(rank));
        superior_->failed(*job, failure);
        return false;
    }
    return again;
}

}  // namespace starling::launch
