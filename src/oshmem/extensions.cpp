// The shmemx_ functions, which OpenSHMEM does not have. Declared in shmemx.h (tools/shmem/header.py).
#pragma GCC visibility push(default)
#include "mpi.h"
//
#include "shmemx.h"
#pragma GCC visibility pop

#include "shmem/runtime_abi.h"

using namespace starling::shmem;

extern "C" {

int pshmemx_team_from_comm(MPI_Comm comm, shmem_team_t* team) {
    return starling_shmem_team_from_comm("shmemx_team_from_comm", comm, reinterpret_cast<void**>(team));
}
int shmemx_team_from_comm(MPI_Comm comm, shmem_team_t* team) __attribute__((weak, alias("pshmemx_team_from_comm")));

int pshmemx_comm_from_team(shmem_team_t team, MPI_Comm* comm) {
    return starling_shmem_comm_from_team("shmemx_comm_from_team", team, reinterpret_cast<void**>(comm));
}
int shmemx_comm_from_team(shmem_team_t team, MPI_Comm* comm) __attribute__((weak, alias("pshmemx_comm_from_team")));
}
