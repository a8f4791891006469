// What the ways of moving a message have in common. There is a file for each, which says when it can be used, what it costs, how
// it starts, what it does with a packet, and how it fails; the receiver chooses by table.h.
#pragma once

#include <cstdint>

#include "link/job.h"
#include "link/peer.h"
#include "message/protocol/packets.h"
#include "message/request.h"

namespace starling::message {

/// A long message that a receive has matched; its data is still the sender's.
struct Matched {
    ReceiveRequest& request;  ///< its peer is set, and it holds its type
    Rts offer;
    uint64_t bytes;  ///< that are wanted: the receive's buffer may be shorter
    bool at_once;    ///< the offer has just come and a receive was waiting for it, so what was sent ahead has not come yet

    const link::Peer& peer() const { return *request.peer; }
    /// Whether this process has sent it to itself: its memory is at hand.
    bool is_own() const { return link::Process{&request.peer->job, request.peer->rank} == link::self(); }
};

/// Who is gone: all of a job, or one process of it.
struct Gone {
    link::Job& job;
    link::Peer* peer = nullptr;  ///< null: all
    bool includes(const link::Peer& other) const { return peer ? &other == peer : &other.job == &job; }
};

}  // namespace starling::message
