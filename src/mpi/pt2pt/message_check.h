// Argument checks that all message-moving functions share.
#pragma once

#include "datatype/datatype.h"
#include "mpi/common/check.h"

namespace starling::mpi {

/// Says that there is no way on from here: what follows a check need not be ready for one that failed and
/// yet goes on.
inline int failed(int error) {
    if (error == MPI_SUCCESS) __builtin_unreachable();
    return error;
}

/// Buffer, count and type of one side of a message; MPI_SUCCESS or the code to return.
inline int check_data(comm::Comm* comm, const datatype::Datatype* type, MPI_Datatype type_handle, const void* buffer,
                      MPI_Count count) {
    if (!type || !type->committed) [[unlikely]]
        return failed(bad_type(comm, type_handle));
    if (count < 0 || !datatype::packed_size_fits(*type, count)) [[unlikely]]
        return failed(bad_count(comm, count));
    // MPI_BOTTOM is null too, but then the type says where the data is.
    if (!buffer && type->predefined && count > 0 && type->size > 0) [[unlikely]]
        return failed(bad_buffer(comm));
    return MPI_SUCCESS;
}

/// Buffer, count and type of a side whose partner is `rank`: without a partner the type may be MPI_DATATYPE_NULL, as
/// programs have it that fill in nothing for a missing neighbour, and other libraries take it.
inline int check_side(comm::Comm* comm, int rank, MPI_Datatype type, const void* buffer, MPI_Count count) {
    if (rank == MPI_PROC_NULL && type == MPI_DATATYPE_NULL) return MPI_SUCCESS;
    return check_data(comm, datatype::from_handle(type), type, buffer, count);
}

inline int check_send(comm::Comm* comm, MPI_Comm handle, int destination, int tag) {
    if (!comm) [[unlikely]]
        return failed(bad_comm(handle));
    if (!valid_destination(*comm, destination)) [[unlikely]]
        return failed(bad_rank(comm, destination));
    if (!valid_tag(tag)) [[unlikely]]
        return failed(bad_tag(comm, tag));
    return MPI_SUCCESS;
}

inline int check_receive(comm::Comm* comm, MPI_Comm handle, int source, int tag) {
    if (!comm) [[unlikely]]
        return failed(bad_comm(handle));
    if (!valid_source(*comm, source)) [[unlikely]]
        return failed(bad_rank(comm, source));
    if (!valid_receive_tag(tag)) [[unlikely]]
        return failed(bad_tag(comm, tag));
    return MPI_SUCCESS;
}

}  // namespace starling::mpi
