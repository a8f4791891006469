// The library, once for each simulated process. Copies of one file are different libraries to the loader: each has all
// variables of its own, those of its threads and functions too, so processes share nothing but what they share for real.
#pragma once

#include <mpi.h>

#include <memory>
#include <string>

namespace starling::simulation {

#define STARLING_SIMULATED_FUNCTIONS(F)                                                                                      \
    F(Init)                                                                                                                  \
    F(Finalize)                                                                                                              \
    F(Abort)                                                                                                                 \
    F(Comm_rank)                                                                                                             \
    F(Comm_size) F(Comm_set_errhandler) F(Comm_split) F(Comm_dup) F(Comm_free) F(Error_class) F(Error_string) F(Get_count)   \
        F(Send) F(Ssend) F(Bsend) F(Recv) F(Isend) F(Issend) F(Irecv) F(Sendrecv) F(Send_init) F(Ssend_init) F(Recv_init)    \
            F(Start) F(Request_free) F(Wait) F(Test) F(Cancel) F(Test_cancelled) F(Probe) F(Iprobe) F(Mprobe) F(Improbe)     \
                F(Mrecv) F(Imrecv) F(Barrier) F(Bcast) F(Reduce) F(Allreduce) F(Gather) F(Scatter) F(Allgather) F(Alltoall)  \
                    F(Reduce_scatter_block) F(Scan) F(Exscan) F(Ibarrier) F(Ibcast) F(Ireduce) F(Iallreduce) F(Igather)      \
                        F(Iscatter) F(Iallgather) F(Ialltoall) F(Ireduce_scatter_block) F(Iscan) F(Iexscan) F(T_init_thread) \
                            F(T_finalize)

/// The functions of one copy, without their prefix.
struct Library {
#define STARLING_FUNCTION(name) decltype(&MPI_##name) name;
    STARLING_SIMULATED_FUNCTIONS(STARLING_FUNCTION)
#undef STARLING_FUNCTION
};

/// Loads copy number `index` of the library in this file, which stays; the same again for the same number.
const Library& library(const std::string& file, size_t index);

}  // namespace starling::simulation
