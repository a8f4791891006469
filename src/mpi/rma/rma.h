// One-sided communication (MPI 5.0 section 12.3).
#pragma once

#include "mpi.h"
#include "mpi/common/counts.h"

namespace starling::mpi {

int Put(const void* origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp,
        MPI_Count target_count, MPI_Datatype target_datatype, MPI_Win win);
int Get(void* origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp,
        MPI_Count target_count, MPI_Datatype target_datatype, MPI_Win win);
int Accumulate(const void* origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype, int target_rank,
               MPI_Aint target_disp, MPI_Count target_count, MPI_Datatype target_datatype, MPI_Op op, MPI_Win win);
int Get_accumulate(const void* origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype, void* result_addr,
                   MPI_Count result_count, MPI_Datatype result_datatype, int target_rank, MPI_Aint target_disp,
                   MPI_Count target_count, MPI_Datatype target_datatype, MPI_Op op, MPI_Win win);
int Fetch_and_op(const void* origin_addr, void* result_addr, MPI_Datatype datatype, int target_rank, MPI_Aint target_disp,
                 MPI_Op op, MPI_Win win);
int Compare_and_swap(const void* origin_addr, const void* compare_addr, void* result_addr, MPI_Datatype datatype,
                     int target_rank, MPI_Aint target_disp, MPI_Win win);
int Rput(const void* origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp,
         MPI_Count target_count, MPI_Datatype target_datatype, MPI_Win win, MPI_Request* request);
int Rget(void* origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp,
         MPI_Count target_count, MPI_Datatype target_datatype, MPI_Win win, MPI_Request* request);
int Raccumulate(const void* origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype, int target_rank,
                MPI_Aint target_disp, MPI_Count target_count, MPI_Datatype target_datatype, MPI_Op op, MPI_Win win,
                MPI_Request* request);
int Rget_accumulate(const void* origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype, void* result_addr,
                    MPI_Count result_count, MPI_Datatype result_datatype, int target_rank, MPI_Aint target_disp,
                    MPI_Count target_count, MPI_Datatype target_datatype, MPI_Op op, MPI_Win win, MPI_Request* request);

}  // namespace starling::mpi
