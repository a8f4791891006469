#include "launch/process/rank_variables.h"

#include "job/environment.h"

namespace starling::launch {

namespace {

// Open MPI's NODE_RANK counts the processes of a host, as LOCAL_RANK does. STARLING_NODE_RANK is the number of the host, as in torchrun.
constexpr RankVariable kVariables[] = {
    {job::kSizeVariable, RankNumber::size, nullptr},
    {"STARLING_LOCAL_RANK", RankNumber::local_rank, nullptr},
    {"STARLING_LOCAL_SIZE", RankNumber::local_size, nullptr},
    {"STARLING_NODE_RANK", RankNumber::host, nullptr},
    {"MPI_LOCALRANKID", RankNumber::local_rank, nullptr},
    {"MPI_LOCALNRANKS", RankNumber::local_size, nullptr},
    {"OMPI_COMM_WORLD_RANK", RankNumber::rank, &ForeignNames::openmpi},
    {"OMPI_COMM_WORLD_SIZE", RankNumber::size, &ForeignNames::openmpi},
    {"OMPI_COMM_WORLD_LOCAL_RANK", RankNumber::local_rank, &ForeignNames::openmpi},
    {"OMPI_COMM_WORLD_LOCAL_SIZE", RankNumber::local_size, &ForeignNames::openmpi},
    {"OMPI_COMM_WORLD_NODE_RANK", RankNumber::local_rank, &ForeignNames::openmpi},
    {"PMI_RANK", RankNumber::rank, &ForeignNames::mpich},
    {"PMI_SIZE", RankNumber::size, &ForeignNames::mpich},
};

}  // namespace

std::span<const RankVariable> rank_variables() { return kVariables; }

}  // namespace starling::launch
