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
struct Awaited;
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
    uint64_t bytes = 0;  ///< packed size
    uint64_t context = 0;
    uint64_t moved = 0;   ///< bytes that went as pieces
    int source_rank = 0;  ///< my rank as the receiver sees it
    int destination = 0;  ///< the receiver's rank in the channel
    int tag = 0;
    uint32_t sequence = 0;
    uint32_t serial = 0;                     ///< what the receiver names this request by
    uint32_t stream_to = 0;                  ///< what we name the receiver's request by
    uint32_t generation = 0;                 ///< goes with stream_to
    transport::OutStream* stream = nullptr;  ///< to another host, from clear_to_stream on; owned
    void* loan = nullptr;                    ///< of its memory to the receiver (protocol/rdma_read.h); null: none
    rdma_write::Writing* writing = nullptr;  ///< our device writes it to the receiver; null: it does not
    /// What is next, or under way: the last three once the receiver has asked for the data (protocol/pieces.h, stream.h, rdma_write.h).
    enum class Stage : uint8_t { eager, envelope, offered, pieces, stream, written } stage = Stage::eager;
    bool waits = false;        ///< its caller does nothing else until it is done; set before start_send(), or never
    bool retained = false;     ///< holds a reference of `type`
    bool queued = false;       ///< is in its peer's queue; kept for those with a stream
    bool synchronous = false;  ///< not complete before it is matched; set before start_send(), or never
    bool cancelling = false;   ///< the receiver is to be asked for it, or has been
    bool withdrawn = false;    ///< was cancelled before its envelope went, which goes for its number alone
    bool has_verdict = false;  ///< a word in this process's region says whether it was matched (match_or_cancel.h)
    bool of_all =
        false;  ///< nobody waits for it any more when a member of the channel has failed; set before start_send(), or never

    bool was_asked_for() const { return stage >= Stage::pieces; }
    packet::Message envelope() const { return {sequence, tag, context, source_rank}; }
};

/// A receive from start to completion. Filled by start_receive(); must not move while it is not done.
struct ReceiveRequest : Request {
    ReceiveRequest() : Request(RequestKind::receive) {}
    void* buffer = nullptr;
    int64_t count = 0;
    const datatype::Datatype* type = nullptr;
    MatchContext* channel = nullptr;
    link::Peer* peer = nullptr;  ///< of the matched message
    uint64_t capacity = 0;       ///< bytes the buffer takes
    uint64_t expected = 0;       ///< bytes that will come in pieces
    uint64_t moved = 0;          ///< bytes that have
    uint64_t post_order = 0;     ///< orders specific against wildcard receives
    int source = 0;              ///< as posted: a rank or MPI_ANY_SOURCE
    int tag = 0;                 ///< as posted: a tag or MPI_ANY_TAG
    uint32_t serial = 0;
    uint32_t send_serial = 0, generation = 0;  ///< of a message that comes in pieces
    transport::Coverage* coverage = nullptr;   ///< of one that comes from another host in pieces; owned
    rdma_write::Awaited* awaited = nullptr;    ///< its sender may write it; null: not, or not any more
    bool retained = false;                     ///< holds a reference of `type`
    bool of_all = false;                       ///< in vain too when another member of the channel has failed; set as of a send
    ListHook hook;                             ///< posted queue
};

}  // namespace starling::message
