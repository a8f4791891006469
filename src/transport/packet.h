// What travels between two processes, whichever path brings it: a header of 32 bytes and a payload. The middle of the header
// belongs to the kind of packet: three kinds say something there, and each has a view of its own.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace starling::packet {

/// Those up to `piece` belong to the message room; the first two carry a message's envelope and are matched in the order of
/// its sequence number. The rest act at once.
enum class Kind : uint8_t {
    eager = 1,        ///< a whole message; Message
    rendezvous,       ///< a message's envelope; Message, payload: Offer (message/protocol/packets.h)
    fetched,          ///< the receiver has the data; payload: Fetched
    clear_to_stream,  ///< the receiver wants the data in pieces; payload: Cts
    share_copy,       ///< the receiver copies and asks the sender to copy too; payload: Share
    piece,            ///< of a message that comes in pieces; Fragment
    open,             ///< asks for a connection; payload: what the way back needs (a ring's slot, where TCP listens)
    accept,           ///< grants it; payload: the same
    refuse,           ///< the other side is at its limit
    close,            ///< last packet on a ring: the sender of this has stopped writing to it
    access,           ///< put, get or update of exposed memory, or the answer; Access, payload: AccessPacket (rma/packets.h)
    knock,            ///< connect, accept and disconnect between jobs; payload: ConnectRequest (dynamic/port.cpp)
    farewell,         ///< between hosts: the sender's last packet, it has called MPI_Finalize
    window_lock,      ///< asks for, grants or gives back a lock of a window; payload: LockMessage (window/lock.cpp)
    rail_gone,        ///< between hosts: an interface of the sender is down; payload: its IPv4 address, network byte order
    multicast,        ///< between members of a group; payload: Note (multicast/datagram.h), behind it perhaps a datagram
    wire_gone,  ///< between hosts: an RC queue of the sender's is gone; payload: QueuePair (transport/network/rdma/rc_connection.h)
    ports,   ///< between hosts: how the sender is reached by verbs; payload: addresses (transport/network/datagram/gid_pairs.h)
    cancel,  ///< asks for a message's envelope back, or answers; payload: Cancel (message/remote_cancel.cpp)
};
inline constexpr size_t kKinds = static_cast<size_t>(Kind::cancel) + 1;  ///< 0 is none
constexpr bool is_for_messages(Kind kind) { return kind <= Kind::piece; }

/// In shared memory, where a payload is that does not fit into a ring's line; in an inbox, any payload.
enum class Where : uint16_t {
    here,    ///< in the ring's bulk, in the inbox's cell
    outbox,  ///< in the sender's outbox (transport/shm/outbox.h); instead of it there is an OutboxPlace
};

/// Kinds eager and rendezvous: the envelope of a message.
struct [[gnu::packed, gnu::aligned(4)]] Message {
    uint32_t sequence;  ///< per ordered pair of processes
    int32_t tag;
    uint64_t context;
    int32_t source;  ///< the sender's rank as the receiver's channel counts
};

/// Kind piece. Pieces may overtake each other; between hosts they may come twice.
struct [[gnu::packed, gnu::aligned(4)]] Fragment {
    uint32_t generation;  ///< of the receive, from its Cts. 0: it follows its offer unasked, and belongs to the
                          ///< last one that came on this ring
    uint32_t serial;      ///< of the receive; 0 if it follows unasked
    uint64_t offset;      ///< in the message
};

/// Kind access.
struct [[gnu::packed, gnu::aligned(4)]] Access {
    uint32_t generation;  ///< of the access: tells those that use one serial after the other apart
    uint32_t serial;      ///< of the access, at the process that asks
    uint64_t offset;      ///< bytes of the access that come before those of the packet
};

/// First 32 bytes of a ring line and of an inbox cell's packet, and what sessions carry.
struct alignas(8) Header {
    std::atomic<uint32_t> stamp;  ///< used by rings only
    Kind kind;
    uint8_t operation;  ///< of an access (rma/packets.h)
    Where where;
    union {
        Message message;
        Fragment piece;
        Access access;
    };
    uint32_t bytes;  ///< of payload
};
static_assert(sizeof(Header) == 32 && offsetof(Header, message) == 8 && offsetof(Header, bytes) == 28);
static_assert(offsetof(Message, context) == 8 && offsetof(Fragment, offset) == 8 && offsetof(Access, offset) == 8);

}  // namespace starling::packet
