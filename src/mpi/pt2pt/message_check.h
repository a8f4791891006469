// Argument checks that all functions which move messages share.
#pragma once

#include "datatype/datatype.h"
#include "mpi/common/check.h"

namespace starling::mpi {

/// Tells the compiler that `error` is never MPI_SUCCESS, so callers need no code for a failed check that returns success.
inline int failed(int error) {
    if (error == MPI_SUCCESS) __builtin_unreachable();
    return error;
}

/// Checks buffer, count and type of the data to send or to receive; returns MPI_SUCCESS or the code for the caller.
inline int check_data(comm::Comm* comm, const datatype::Datatype* type, MPI_Datatype type_handle, const void* buffer,
                      MPI_Count count) {
    if (!type || !type->committed) [[unlikely]]
        return failed(bad_type(comm, type_handle));
    if (count < 0 || !datatype::packed_size_fits(*type, count)) [[unlikely]]
        return failed(bad_count(comm, count));
    // MPI_BOTTOM is null too, but is valid with a type that contains addresses.
    if (!buffer && type->predefined && count > 0 && type->size > 0) [[unlikely]]
        return failed(bad_buffer(comm));
    return MPI_SUCCESS;
}

/// Checks buffer, count and type of the data to exchange with `rank`. For MPI_PROC_NULL the type may be MPI_DATATYPE_NULL: programs pass it
/// for a missing neighbor, and other libraries accept it.
inline int check_side(comm::Comm* comm, int rank, MPI_Datatype type, const void* buffer, MPI_Count count) {
    if (rank == MPI_PROC_NULL && type == MPI_DATATYPE_NULL) return MPI_SUCCESS;
    return check_data(comm, datatype::from_handle(type), type, buffer, count);
}

/// Checks a transfer with MPI_PROC_NULL, which fails only if the communicator is revoked.
inline int check_no_transfer(comm::Comm* comm) {
    return comm->point_to_point.revoked() ? raise(comm, message::why_revoked()) : MPI_SUCCESS;
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
