// The library's private fields of an MPI_Status: byte count and cancelled flag (MPI 5.0 section 3.2.5).
#pragma once

#include <cstdint>
#include <cstring>

#include "mpi.h"
#include "progress/request.h"

namespace starling::message {

inline uint64_t status_bytes(const MPI_Status& status) {
    uint64_t bytes;
    std::memcpy(&bytes, status.MPI_internal, sizeof bytes);
    return bytes;
}
inline void set_status_bytes(MPI_Status& status, uint64_t bytes) { std::memcpy(status.MPI_internal, &bytes, sizeof bytes); }
inline bool status_cancelled(const MPI_Status& status) { return status.MPI_internal[2] != 0; }
inline void set_status_cancelled(MPI_Status& status, bool cancelled) { status.MPI_internal[2] = cancelled; }

/// Sets all fields of a status but MPI_ERROR, which only the calls that complete several requests set. Null means MPI_STATUS_IGNORE.
inline void fill_status(MPI_Status* status, const progress::Outcome& outcome) {
    if (!status) return;
    status->MPI_SOURCE = outcome.source;
    status->MPI_TAG = outcome.tag;
    set_status_bytes(*status, outcome.bytes);
    set_status_cancelled(*status, outcome.cancelled);
}

/// Returns the outcome of a receive from MPI_PROC_NULL.
inline progress::Outcome proc_null_outcome() {
    progress::Outcome outcome;
    outcome.source = MPI_PROC_NULL;
    return outcome;
}

}  // namespace starling::message
