// The request: one pending operation, whatever it is. MPI_Request handles are addresses of these.
#pragma once

#include <coroutine>
#include <cstdint>

#include "mpi.h"

namespace starling::progress {

class WaitReporter;

/// What a completed operation reports. `source` and `tag` as in MPI_Status; `bytes` received.
struct Outcome {
    int source = MPI_ANY_SOURCE;
    int tag = MPI_ANY_TAG;
    int error = MPI_SUCCESS;
    bool cancelled = false;
    uint64_t bytes = 0;
};

enum class RequestKind : uint8_t { send, receive, collective, generalized, persistent, rma };

struct Request;

/// What the request chapter needs to know about a kind of MPI_Request; one constant per kind. Null: does nothing.
struct RequestClass {
    void (*dispose)(Request& request);                             ///< gives the object back to its pool; done or inactive only
    int (*start)(Request& request) = nullptr;                      ///< MPI_Start; persistent requests only
    bool (*cancel)(Request& request) = nullptr;                    ///< MPI_Cancel
    int (*query)(Request& request, MPI_Status& status) = nullptr;  ///< generalized: fills the status when done
    int (*end)(Request& request) = nullptr;  ///< generalized: calls the program's free function; dispose() then doesn't
    /// Tells what it waits for (progress/wait_report.h).
    void (*tell)(const Request& request, WaitReporter& teller) = nullptr;
    void (*completed)(Request& request) = nullptr;  ///< called by complete(), for parts of a larger operation
};

/// Base of every operation that can be waited for. The owner (a handle, a stack frame of a blocking call, a
/// coroutine frame) frees it; the engine only ever calls complete().
struct Request {
    static constexpr uint32_t kMagic = 0x51657152;
    uint32_t magic = 0;  ///< set by the pool for those that are handles
    uint32_t pool_index = 0;
    RequestKind kind = RequestKind::send;
    bool done = false;                  ///< the operation has completed; `outcome` is valid
    std::coroutine_handle<> waiter;     ///< scheduled by complete(); may be empty
    uint32_t* open_in_group = nullptr;  ///< if set, complete() decrements it and schedules `waiter` only at 0
    Outcome outcome;

    // Of those that are handles:
    const RequestClass* operations = nullptr;
    void* communicator = nullptr;  ///< comm::Comm whose error handler hears of failures; holds a reference; may be null
    bool persistent = false;
    bool active = true;     ///< false: persistent and not started
    bool orphaned = false;  ///< MPI_Request_free came first: complete() disposes of it

    constexpr explicit Request(RequestKind k = RequestKind::send) : kind(k) {}

    /// Marks the operation done and schedules the waiter (of a group: with its last operation). Called with the
    /// library's lock held.
    void complete() {
        done = true;
        if (waiter || open_in_group || orphaned || (operations && operations->completed)) tell_of_completion();
    }

  private:
    void tell_of_completion();
};

// Who notices that an operation fails is whichever thread polls; who reports it is the one that waits. So the sentence that
// says what happened (failure_text()) is kept with the request in between.

/// Moves this thread's sentence to the request: when it fails.
[[gnu::cold]] void keep_failure(const Request& request);
/// Makes the request's sentence this thread's: before its error is reported. Clears this thread's if there is none.
[[gnu::cold]] void recall_failure(const Request& request);
/// Reads the error of a request that is done, with its sentence.
inline int error_of(const Request& request) {
    if (request.outcome.error) [[unlikely]]
        recall_failure(request);
    return request.outcome.error;
}

}  // namespace starling::progress
