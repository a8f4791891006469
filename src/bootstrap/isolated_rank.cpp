#include "bootstrap/isolated_rank.h"

#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "job/environment.h"
#include "mpi.h"

namespace starling::bootstrap {

namespace {

/// The environment variables by which a manager marks the processes that it starts together. Variables of the allocation (SLURM_NTASKS in a
/// batch script, PBS_NP) do not count, because a singleton has them too.
struct Sign {
    const char* manager;
    const char* size;     ///< variable with the number of processes; null: there is none
    const char* rank;     ///< variable with the number of this process, from 0
    const char* besides;  ///< variable that must be set too; null: none
    const char* remedy;
};

constexpr const char* kSlurmRemedy =
    "start it with srun --mpi=pmix or --mpi=pmi2, or with Starling's mpiexec in the allocation";
constexpr const char* kOwnRemedy = "start it with Starling's mpiexec";
constexpr const char* kPmiRemedy = "unset STARLING_PMI if it is set, or start it with Starling's mpiexec";

// The first match counts. A program that another launcher starts within a step of srun has the variables of both, and those of the other
// launcher are better evidence.
constexpr Sign kSigns[] = {
    {"Open MPI's mpirun", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", nullptr, kPmiRemedy},
    {"MVAPICH's launcher", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK", nullptr, kOwnRemedy},
    {"mpirun_rsh", "MPIRUN_NPROCS", "MPIRUN_RANK", nullptr, kOwnRemedy},
    {"jsrun", "JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_RANK", nullptr, kOwnRemedy},
    {"flux run", "FLUX_JOB_SIZE", "FLUX_TASK_RANK", nullptr, kPmiRemedy},
    {"a PMI process manager", "PMI_SIZE", "PMI_RANK", nullptr, kPmiRemedy},
    {"srun", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_STEP_ID", kSlurmRemedy},
    {"PALS", nullptr, "PALS_RANKID", nullptr, kOwnRemedy},
    {"aprun", nullptr, "ALPS_APP_PE", nullptr, kOwnRemedy},
    {"a PMIx process manager", nullptr, "PMIX_RANK", "PMIX_NAMESPACE", kPmiRemedy},
};

const char* value_of(const char* name) {
    const char* value = name ? std::getenv(name) : nullptr;
    return value && *value ? value : nullptr;
}

// Slurm numbers steps that srun did not create, such as an interactive shell, from the top of the range downwards.
bool is_step_of_its_own(const Sign& sign) {
    constexpr unsigned long kFirstSpecialStep = 0xfffffff0;
    return std::strcmp(sign.manager, "srun") == 0 && std::strtoul(value_of(sign.besides), nullptr, 10) >= kFirstSpecialStep;
}

// With --compat, Starling's own mpiexec sets variables of other launchers, and a program that a rank starts inherits them. Such a program may
// run alone. Other launchers also set the variable with which their processes find each other.
bool is_of_own_launcher(const Sign& sign) {
    const char *ours = value_of(job::kSizeVariable), *theirs = value_of(sign.size);
    return ours && theirs && std::strcmp(ours, theirs) == 0 && !value_of("PMIX_NAMESPACE") && !job::has_pmi_manager();
}

bool shows_others(const Sign& sign) {
    const char* rank = value_of(sign.rank);
    if (is_of_own_launcher(sign)) return false;
    if (!rank || (sign.besides && !value_of(sign.besides)) || is_step_of_its_own(sign)) return false;
    if (std::atoi(rank) > 0) return true;
    const char* size = value_of(sign.size);
    return size && std::atoi(size) > 1;
}

}  // namespace

int refuse_loneliness() {
    for (const Sign& sign : kSigns) {
        if (!shows_others(sign)) continue;
        const char* size = value_of(sign.size);
        return fail(MPI_ERR_OTHER,
                    "%s has started %s processes, of which this is number %s (%s), but provides no way for them to find "
                    "each other, so that each would run alone; %s, or set STARLING_SINGLETON=allow if that is meant",
                    sign.manager, size ? size : "several", value_of(sign.rank), sign.rank, sign.remedy);
    }
    return MPI_SUCCESS;
}

}  // namespace starling::bootstrap
