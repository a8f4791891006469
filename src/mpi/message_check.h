// Argument checks that all message-moving functions share.
#pragma once

#include "datatype/datatype.h"
#include "mpi/check.h"

namespace starling::mpi {

/// Buffer, count and type of one side of a message; MPI_SUCCESS or the code to return.
inline int check_data(comm::Comm* comm, const datatype::Datatype* type, MPI_Datatype type_handle, const void* buffer,
                      MPI_Count count, const char* function) {
    if (!type || !type->committed) [[unlikely]]
        return bad_type(comm, type_handle, function);
    if (count < 0 || !datatype::packed_size_fits(*type, count)) [[unlikely]]
        return bad_count(comm, count, function);
    // MPI_BOTTOM is null too, but then the type says where the data is.
    if (!buffer && type->predefined && count > 0 && type->size > 0) [[unlikely]]
        return bad_buffer(comm, function);
    return MPI_SUCCESS;
}

inline int check_send(comm::Comm* comm, MPI_Comm handle, int destination, int tag, const char* function) {
    if (!comm) [[unlikely]]
        return bad_comm(handle, function);
    if (!valid_destination(*comm, destination)) [[unlikely]]
        return bad_rank(comm, destination, function);
    if (!valid_tag(tag)) [[unlikely]]
        return bad_tag(comm, tag, function);
    return MPI_SUCCESS;
}

inline int check_receive(comm::Comm* comm, MPI_Comm handle, int source, int tag, const char* function) {
    if (!comm) [[unlikely]]
        return bad_comm(handle, function);
    if (!valid_source(*comm, source)) [[unlikely]]
        return bad_rank(comm, source, function);
    if (!valid_receive_tag(tag)) [[unlikely]]
        return bad_tag(comm, tag, function);
    return MPI_SUCCESS;
}

}  // namespace starling::mpi
