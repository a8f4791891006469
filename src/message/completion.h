// Completes sends and receives.
#pragma once

#include "base/error.h"
#include "datatype/datatype.h"
#include "message/request.h"

namespace starling::message {

/// Completes a request. `error` is its error class, and failure_text() describes it. For a receive, all data must have arrived.
template <class SendOrReceive>
inline void finish(SendOrReceive& request, int error) {
    if (request.retained) datatype::release(*request.type);
    request.retained = false;
    if (error && error != request.outcome.error) [[unlikely]]
        save_failure(request);  // only for an error that is detected here; other errors' texts were kept when they occurred
    request.outcome.error = error;
    request.complete();
}

/// Returns the error of a receive whose message is longer than its buffer.
inline int truncated(const ReceiveRequest& request, uint64_t bytes) {
    return fail(MPI_ERR_TRUNCATE, "a message of %llu bytes from rank %d with tag %d does not fit into a buffer of %llu bytes",
                static_cast<unsigned long long>(bytes), request.outcome.source, request.outcome.tag,
                static_cast<unsigned long long>(request.capacity));
}

}  // namespace starling::message
