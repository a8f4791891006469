// The environment variables by which scripts and libraries learn a process's place in its job before MPI_Init: Starling's own, those that
// Hydra and Intel MPI set, and with --compat those of Open MPI and of PMI. A program that a rank starts inherits them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace starling::launch {

/// The numbers of a job on one host, which all its processes there share.
struct JobNumbers {
    uint32_t size = 1;        ///< number of processes of the job
    uint32_t local_size = 1;  ///< number of processes of the job on this host
    uint32_t host = 0;        ///< number of this host among the hosts of the job, from 0
};

/// The families of variable names that a program gets in addition to Starling's own.
struct ForeignNames {
    bool openmpi = false;  ///< OMPI_COMM_WORLD_RANK and its relatives
    bool mpich = false;    ///< PMI_RANK and PMI_SIZE
};

/// The number that a variable holds.
enum class RankNumber { rank, size, local_rank, local_size, host };

struct RankVariable {
    std::string_view name;
    RankNumber number;
    bool ForeignNames::*family;  ///< family for which the variable is set; null: always
};

/// Returns all variables. Only STARLING_RANK is not among them: it identifies the process (job/environment.h).
std::span<const RankVariable> rank_variables();

/// Returns whether the value differs between the processes of one host.
constexpr bool is_per_process(RankNumber number) { return number == RankNumber::rank || number == RankNumber::local_rank; }

}  // namespace starling::launch
