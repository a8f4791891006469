// The request: one pending operation, whatever it is. MPI_Request handles are addresses of these.
#pragma once

#include <coroutine>
#include <cstdint>

#include "base/list.h"
#include "mpi.h"

namespace starling::datatype {
struct Datatype;
}
namespace starling::link {
struct Peer;
}
namespace starling::progress {
class Teller;
}
namespace starling::ip {
class Coverage;
class OutStream;
}  // namespace starling::ip

namespace starling::message {

class Channel;

/// What a completed operation reports. `source` and `tag` as in MPI_Status; `bytes` received.
struct Outcome {
    int source = MPI_ANY_SOURCE;
    int tag = MPI_ANY_TAG;
    int error = MPI_SUCCESS;
    bool cancelled = false;
    uint64_t bytes = 0;
};

enum class RequestKind : uint8_t { send, receive, collective, generalized, persistent };

struct Request;

/// What the request chapter needs to know about a kind of MPI_Request; one constant per kind. Null: does nothing.
struct RequestClass {
    void (*dispose)(Request& request);           ///< gives the object back to its pool; done or inactive only
    int (*start)(Request& request) = nullptr;    ///< MPI_Start; persistent requests only
    bool (*cancel)(Request& request) = nullptr;  ///< MPI_Cancel
    int (*query)(Request& request, MPI_Status& status) = nullptr;  ///< generalized: fills the status when done
    int (*end)(Request& request) = nullptr;  ///< generalized: calls the program's free function; dispose() then doesn't
    /// Tells what it waits for (progress/teller.h).
    void (*tell)(const Request& request, progress::Teller& teller) = nullptr;
    void (*completed)(Request& request) = nullptr;  ///< called by complete(), for parts of a larger operation
};

/// Base of every operation that can be waited for. The owner (a handle, a stack frame of a blocking call, a
/// coroutine frame) frees it; the engine only ever calls complete().
struct Request {
    static constexpr uint32_t kMagic = 0x51657152;
    uint32_t magic = 0;  ///< set by the pool for those that are handles
    uint32_t pool_index = 0;
    RequestKind kind = RequestKind::send;
    bool done = false;               ///< the operation has completed; `outcome` is valid
    std::coroutine_handle<> waiter;  ///< scheduled by complete(); may be empty
    uint32_t* open_in_group = nullptr;  ///< if set, complete() decrements it and schedules `waiter` only at 0
    Outcome outcome;

    // Of those that are handles:
    const RequestClass* operations = nullptr;
    void* communicator = nullptr;  ///< comm::Comm whose error handler hears of failures; holds a reference; may be null
    bool persistent = false;
    bool active = true;            ///< false: persistent and not started
    bool orphaned = false;         ///< MPI_Request_free came first: complete() disposes of it

    constexpr explicit Request(RequestKind k = RequestKind::send) : kind(k) {}

    /// Marks the operation done and schedules the waiter (of a group: with its last operation). Called with the
    /// library's lock held.
    void complete() {
        done = true;
        if (waiter || open_in_group || orphaned || (operations && operations->completed))
            tell_of_completion();
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

/// A send from start to completion. Filled by start_send(); must not move while it is not done.
struct SendRequest : Request {
    SendRequest() : Request(RequestKind::send) {}
    const void* buffer = nullptr;
    int64_t count = 0;
    const datatype::Datatype* type = nullptr;
    link::Peer* peer = nullptr;
    uint64_t bytes = 0;       ///< packed size
    uint64_t context = 0;
    uint64_t moved = 0;       ///< streamed so far (two-copy fallback)
    int source_rank = 0;      ///< my rank as the receiver sees it
    int destination = 0;      ///< the receiver's rank in the channel
    int tag = 0;
    uint32_t sequence = 0;
    uint32_t serial = 0;      ///< what the receiver names this request by
    uint32_t stream_to = 0;   ///< what we name the receiver's request by
    uint32_t generation = 0;  ///< goes with stream_to
    ip::OutStream* stream = nullptr;  ///< to another host, from clear_to_stream on; owned
    enum class Stage : uint8_t { eager, envelope, offered, stream } stage = Stage::eager;
    bool waits = false;       ///< its caller does nothing else until it is done; set before start_send(), or never
    bool retained = false;    ///< holds a reference of `type`
    bool queued = false;      ///< is in its peer's queue; kept for those with a stream
};

/// A receive from start to completion. Filled by start_receive(); must not move while it is not done.
struct ReceiveRequest : Request {
    ReceiveRequest() : Request(RequestKind::receive) {}
    void* buffer = nullptr;
    int64_t count = 0;
    const datatype::Datatype* type = nullptr;
    Channel* channel = nullptr;
    link::Peer* peer = nullptr;  ///< of the matched message
    uint64_t capacity = 0;       ///< bytes the buffer takes
    uint64_t expected = 0;       ///< bytes that will come in pieces
    uint64_t moved = 0;          ///< bytes that have
    uint64_t post_order = 0;     ///< orders specific against wildcard receives
    int source = 0;  ///< as posted: a rank or MPI_ANY_SOURCE
    int tag = 0;     ///< as posted: a tag or MPI_ANY_TAG
    uint32_t serial = 0;
    uint32_t send_serial = 0, generation = 0;  ///< of a message that comes in pieces
    ip::Coverage* coverage = nullptr;          ///< of one that comes from another host in pieces; owned
    bool retained = false;  ///< holds a reference of `type`
    ListHook hook;          ///< posted queue
};

}  // namespace starling::message
