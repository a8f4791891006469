// What travels between two processes on one machine, whichever path brings it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace starling::shm {

/// Kinds of packets. Those of the message room carry a sequence number and are matched in its order;
/// the rest act at once.
enum class Kind : uint8_t {
    eager = 1,        ///< a whole message
    rendezvous,       ///< a message's envelope; payload: Offer (message/protocol.h)
    fetched,          ///< the receiver has the data; payload: serial of the send
    clear_to_stream,  ///< the receiver wants the data in pieces; payload: serials of send and receive
    share_copy,       ///< the receiver copies and asks the sender to copy too; payload: Share
    piece,            ///< a piece of a streamed message
    open,             ///< asks for a connection; payload: ring slot for the way back
    accept,           ///< grants it; payload: ring slot
    refuse,           ///< the other side is at its limit
    close,            ///< last packet on a ring: the sender of this has stopped writing to it
    segment,          ///< put, get or update of exposed memory, or the answer (window/packets.h)
    spawn_control,    ///< connect, accept and disconnect between jobs (mpi/dynamic)
    farewell,         ///< between hosts: the sender's last packet, it has called MPI_Finalize
    rail_gone,        ///< between hosts: an interface of the sender is down; payload: its IPv4 address, network byte order
};

/// Where a payload is that does not fit into a ring's line; in an inbox, any payload.
enum class Where : uint16_t {
    here,    ///< in the ring's bulk, in the inbox's cell
    outbox,  ///< in the sender's outbox (transport/shm/outbox.h); instead of it there is an OutboxPlace
};

/// First 32 bytes of a ring line and of an inbox cell's packet. `stamp` is used by rings only.
struct Header {
    std::atomic<uint32_t> stamp;
    Kind kind;
    uint8_t flags;
    Where where;
    uint32_t sequence;  ///< per ordered pair of processes; kinds eager and rendezvous
    int32_t tag;
    uint64_t context;
    int32_t source;  ///< the sender's rank as the receiver's channel counts
    uint32_t bytes;  ///< of payload
};
static_assert(sizeof(Header) == 32);

}  // namespace starling::shm
