// Common types of the rendezvous protocols. Each protocol has a file that says when it can be used, what it costs, how it starts, how it
// handles its packets, and how it fails. The receiver chooses by table.h.
#pragma once

#include <cstdint>

#include "link/job.h"
#include "link/peer.h"
#include "message/protocol/packets.h"
#include "message/request.h"

namespace starling::message {

/// A long message that a receive has matched and whose data is still in the sender's memory.
struct Matched {
    ReceiveRequest& request;  ///< the receive; its peer is set, and it holds a reference of its type
    Rts offer;
    uint64_t bytes;  ///< number of bytes to receive; less than the message's length if the receive's buffer is shorter
    /// Whether a receive was posted when the RTS arrived, and no fragment that was sent before the CTS has arrived yet.
    bool at_once;

    const link::Peer& peer() const { return *request.peer; }
    /// Returns whether this process sent the message to itself, so that its memory is accessible.
    bool is_to_self() const { return link::Process{&request.peer->job, request.peer->rank} == link::self(); }
};

/// The processes that have failed: all of a job, or one of its processes.
struct Gone {
    link::Job& job;
    link::Peer* peer = nullptr;  ///< the failed process; null: all processes of the job
    bool includes(const link::Peer& other) const { return peer ? &other == peer : &other.job == &job; }
};

}  // namespace starling::message
