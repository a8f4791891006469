// Conversion of statuses of MPICH's interface. Included by compat/convert.h.
#pragma once

namespace starling::compat::abi {

inline MPI_Status status_in(const Status& status) {
    const auto high = static_cast<uint32_t>(status.count_high_and_cancelled);
    return make_status(status.MPI_SOURCE, status.MPI_TAG, status.MPI_ERROR,
                       {uint64_t{high >> 1} << 32 | static_cast<uint32_t>(status.count_low), static_cast<int>(high & 1)});
}

inline void status_out(const MPI_Status& from, Status& status) {
    const StatusRest rest = rest_of(from);
    status.count_low = static_cast<int>(rest.bytes);
    status.count_high_and_cancelled = static_cast<int>(rest.bytes >> 32 << 1 | (rest.cancelled != 0));
    status.MPI_SOURCE = rank_out(from.MPI_SOURCE);
    status.MPI_TAG = tag_out(from.MPI_TAG);
    status.MPI_ERROR = compat::error_out(from.MPI_ERROR);
}

}  // namespace starling::compat::abi
