// Request: one pending operation of any kind. MPI_Request handles are addresses of these.
#pragma once

#include <coroutine>
#include <cstdint>

#include "mpi.h"

namespace starling::progress {

class WaitReporter;

/// The result of a completed operation. `source` and `tag` as in MPI_Status; `bytes`: the received length.
struct Outcome {
    int source = MPI_ANY_SOURCE;
    int tag = MPI_ANY_TAG;
    int error = MPI_SUCCESS;
    bool cancelled = false;
    uint64_t bytes = 0;
};

enum class RequestKind : uint8_t { send, receive, collective, generalized, persistent, rma, file };

struct Request;

/// The functions of one kind of MPI_Request, for the completion calls (MPI_Wait, MPI_Cancel, ...); one constant per kind. Null: no effect.
struct RequestClass {
    void (*dispose)(Request& request);           ///< returns the object to its pool; called for done or inactive requests only
    int (*start)(Request& request) = nullptr;    ///< starts a persistent request, for MPI_Start
    bool (*cancel)(Request& request) = nullptr;  ///< MPI_Cancel
    int (*query)(Request& request, MPI_Status& status) = nullptr;  ///< fills the status of a generalized request that is done
    int (*end)(Request& request) = nullptr;  ///< calls a generalized request's free function; dispose() then does not call it
    /// Reports what the request waits for (progress/wait_report.h).
    void (*report_wait)(const Request& request, WaitReporter& teller) = nullptr;
    void (*completed)(Request& request) = nullptr;  ///< called by complete(), for parts of a larger operation
};

/// Base of every operation that can be waited for. Its owner (a handle, a stack frame of a blocking call, a coroutine frame) frees it; the
/// engine only calls complete().
struct Request {
    static constexpr uint32_t kMagic = 0x51657152;
    uint32_t magic = 0;  ///< kMagic for requests that are handles, set by the pool; otherwise 0
    uint32_t pool_index = 0;
    RequestKind kind = RequestKind::send;
    bool done = false;                  ///< whether the operation has completed; `outcome` is then valid
    std::coroutine_handle<> waiter;     ///< coroutine that complete() schedules; may be empty
    uint32_t* open_in_group = nullptr;  ///< if set, complete() decrements it and schedules `waiter` only at 0
    Outcome outcome;

    // The members below are only used by requests that are handles.
    const RequestClass* operations = nullptr;
    void* communicator = nullptr;  ///< comm::Comm whose error handler is called on failure; holds a reference; may be null
    bool persistent = false;
    bool active = true;     ///< false: the request is persistent and not started
    bool orphaned = false;  ///< freed by MPI_Request_free while pending; complete() then disposes of it

    constexpr explicit Request(RequestKind k = RequestKind::send) : kind(k) {}

    /// Marks the operation done and schedules the waiter; in a group, only the last operation schedules it. Call it with the library's lock
    /// held.
    void complete() {
        done = true;
        if (waiter || open_in_group || orphaned || (operations && operations->completed)) notify_completion();
    }

  private:
    void notify_completion();
};

/// Awaits one request in a coroutine: `co_await RequestDone{request};`. The request may be started again afterwards.
struct RequestDone {
    Request& request;
    bool await_ready() const { return request.done; }
    void await_suspend(std::coroutine_handle<> waiter) const { request.waiter = waiter; }
    void await_resume() const { request.waiter = nullptr; }
};

// Any polling thread may detect that an operation failed, but the waiting thread reports it. In between, the error text (failure_text()) is
// kept with the request.

/// Moves this thread's error text to the request, when the operation fails.
[[gnu::cold]] void save_failure(const Request& request);
/// Moves the request's error text to this thread, before its error is reported. If the request has none, clears this thread's.
[[gnu::cold]] void recall_failure(const Request& request);
/// Returns the error of a request that is done, and restores its error text.
inline int error_of(const Request& request) {
    if (request.outcome.error) [[unlikely]]
        recall_failure(request);
    return request.outcome.error;
}

}  // namespace starling::progress
