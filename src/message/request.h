// The request: one pending operation, whatever it is. MPI_Request handles are addresses of these.
#pragma once

#include <coroutine>
#include <cstdint>

#include "base/list.h"
#include "mpi.h"

namespace starling::message {

/// What a completed operation reports. `source` and `tag` as in MPI_Status; `bytes` received.
struct Outcome {
    int source = MPI_ANY_SOURCE;
    int tag = MPI_ANY_TAG;
    int error = MPI_SUCCESS;
    bool cancelled = false;
    uint64_t bytes = 0;
};

enum class RequestKind : uint8_t { send, receive, collective, generalized, persistent_send, persistent_receive };

/// Base of every operation that can be waited for. The owner (a handle, a stack frame of a blocking call, a
/// coroutine frame) frees it; the engine only ever calls complete().
struct Request {
    static constexpr uint32_t kMagic = 0x51657152;
    uint32_t magic = kMagic;
    uint32_t pool_index = 0;
    RequestKind kind = RequestKind::send;
    bool done = false;              ///< the operation has completed; `outcome` is valid
    std::coroutine_handle<> waiter; ///< resumed by the engine after completion, may be empty
    Outcome outcome;

    /// Marks the operation done and schedules the waiter. Called with the library's lock held.
    void complete();
};

}  // namespace starling::message
