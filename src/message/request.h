// Sends and receives: requests of the message room.
#pragma once

#include <cstdint>

#include "base/list.h"
#include "progress/request.h"
#include "transport/packet.h"

namespace starling::datatype {
struct Datatype;
}
namespace starling::link {
struct Peer;
}
namespace starling::transport {
class Coverage;
class OutStream;
}  // namespace starling::transport

namespace starling::message::rdma_write {
struct Writing;
struct IncomingWrite;
}  // namespace starling::message::rdma_write

namespace starling::message {

using progress::Outcome;
using progress::Request;
using progress::RequestClass;
using progress::RequestKind;

class MatchContext;

/// A send from start to completion. Filled by start_send(); must not move while it is not done.
struct SendRequest : Request {
    SendRequest() : Request(RequestKind::send) {}
    const void* buffer = nullptr;
    int64_t count = 0;
    const datatype::Datatype* type = nullptr;
    link::Peer* peer = nullptr;
    uint64_t bytes = 0;  ///< size of the packed data, bytes
    uint64_t context = 0;
    uint64_t moved = 0;   ///< bytes sent as fragments
    int source_rank = 0;  ///< rank of this process in the view of the receiver
    int destination = 0;  ///< rank of the receiver in the match context
    int tag = 0;
    uint32_t sequence = 0;
    uint32_t serial = 0;                     ///< request id by which the receiver refers to this send
    uint32_t stream_to = 0;                  ///< request id of the receive, from its CTS
    uint32_t generation = 0;                 ///< generation that belongs to stream_to
    transport::OutStream* stream = nullptr;  ///< stream to another host, once a CTS has arrived; owned
    void* loan = nullptr;  ///< registration of the send's memory for the receiver (protocol/rdma_read.h); null: none
    rdma_write::Writing* writing = nullptr;  ///< RDMA write in progress to the receiver; null: none
    /// The step of the send that is next or in progress. The steps from `pieces` on follow the receiver's CTS (protocol/pieces.h, stream.h,
    /// rdma_write.h).
    enum class Stage : uint8_t { eager, envelope, offered, pieces, stream, written } stage = Stage::eager;
    bool waits = false;        ///< whether the caller blocks until the send is done; set before start_send() or never
    bool retained = false;     ///< whether the send holds a reference of `type`
    bool queued = false;       ///< whether the send is in its peer's queue; only maintained for streams
    bool synchronous = false;  ///< whether the send completes only when matched; set before start_send(), or never
    bool cancelling = false;   ///< whether a cancel packet was sent to the receiver, or will be
    bool withdrawn = false;    ///< cancelled before its envelope was sent, which then only carries the sequence number
    bool has_verdict = false;  ///< whether a match-or-cancel word in this process's region exists (match_or_cancel.h)
    /// Whether the send ends when any member of the match context fails; set before start_send() or never.
    bool of_all = false;

    bool has_cts() const { return stage >= Stage::pieces; }
    packet::MessageHeader envelope() const { return {sequence, tag, context, source_rank}; }
};

/// A receive from start to completion. Filled by start_receive(); must not move while it is not done.
struct ReceiveRequest : Request {
    ReceiveRequest() : Request(RequestKind::receive) {}
    void* buffer = nullptr;
    int64_t count = 0;
    const datatype::Datatype* type = nullptr;
    MatchContext* channel = nullptr;
    link::Peer* peer = nullptr;  ///< sender of the matched message
    uint64_t capacity = 0;       ///< size of the buffer, bytes
    uint64_t expected = 0;       ///< total number of bytes that will arrive as fragments
    uint64_t moved = 0;          ///< number of bytes that have arrived as fragments
    uint64_t post_order = 0;     ///< order of posting, to choose between specific and wildcard receives
    int source = 0;              ///< source as posted: a rank or MPI_ANY_SOURCE
    int tag = 0;                 ///< tag as posted: a tag or MPI_ANY_TAG
    uint32_t serial = 0;
    uint32_t send_serial = 0, generation = 0;      ///< the send's request id, and this receive's generation
    transport::Coverage* coverage = nullptr;       ///< bytes received from another host as fragments; owned
    rdma_write::IncomingWrite* awaited = nullptr;  ///< RDMA target that the sender may write; null: none (any more)
    bool retained = false;                         ///< whether the receive holds a reference of `type`
    /// Whether the receive fails when any member of the match context fails; set before start_receive() or never.
    bool of_all = false;
    ListHook hook;  ///< link in the posted queue
};

}  // namespace starling::message
