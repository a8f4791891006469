// Conversion of statuses of Open MPI's interface. Included by compat/convert.h.
#pragma once

namespace starling::compat::abi {

inline MPI_Status status_in(const Status& status) {
    return make_status(status.MPI_SOURCE, status.MPI_TAG, status.MPI_ERROR, {status.bytes, status.cancelled});
}

inline void status_out(const MPI_Status& from, Status& status) {
    const StatusRest rest = rest_of(from);
    status = {rank_out(from.MPI_SOURCE), tag_out(from.MPI_TAG), compat::error_out(from.MPI_ERROR), rest.cancelled, rest.bytes};
}

}  // namespace starling::compat::abi
