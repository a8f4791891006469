// The packet, the same on every path: a header of 32 bytes and a payload. The middle of the header is a different struct for message
// envelopes, fragments and RMA accesses; these structs are defined below.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace starling::packet {

/// The kinds of packets. The room `message` handles those up to `fragment`. `eager` and `rendezvous` carry a message's envelope and are
/// matched in the order of their sequence numbers; all other kinds take effect on arrival.
enum class PacketKind : uint8_t {
    eager = 1,        ///< a whole message; uses MessageHeader
    rendezvous,       ///< RTS, a message's envelope; uses MessageHeader; payload: Rts (message/protocol/packets.h)
    fetched,          ///< FIN, the receiver has the data; payload: Fin
    clear_to_stream,  ///< CTS, the receiver asks for the data in fragments; payload: Cts
    share_copy,       ///< the receiver copies and asks the sender to copy too; payload: Share
    fragment,         ///< a fragment of a rendezvous message; uses the struct Fragment
    open,             ///< requests a connection; payload: the sender's end (a ring's slot or a TCP address)
    accept,           ///< accepts a connection; payload: the sender's end, as in `open`
    refuse,           ///< refuses a connection: the sender is at its limit
    close,            ///< last packet on a ring: its sender has stopped writing to it
    access,    ///< put, get or update of exposed memory, or its reply; uses AccessHeader; payload: AccessPacket (rma/packets.h)
    knock,     ///< connect, accept and disconnect between jobs; payload: ConnectRequest (dynamic/port.cpp)
    farewell,  ///< between hosts: the sender's last packet, since it has called MPI_Finalize
    window_lock,  ///< requests, grants or releases a window's lock; payload: LockMessage (window/lock.cpp)
    rail_lost,    ///< between hosts: an interface of the sender is down; payload: its IPv4 address, network byte order
    multicast,    ///< between members of a group; payload: Note (multicast/datagram.h), optionally followed by a datagram
    wire_lost,  ///< between hosts: an RC queue of the sender has failed; payload: QueuePair (transport/network/rdma/rc_connection.h)
    ports,  ///< between hosts: the sender's verbs ports; payload: addresses (transport/network/datagram/gid_pairs.h)
    cancel,  ///< requests the cancellation of a sent message, or replies to the request; payload: Cancel (message/remote_cancel.cpp)
    revoke,  ///< revokes a communicator; payload: its context id (message/revocation.cpp)
    ballot,  ///< a part of a vote or decision in an agreement; payload: BallotPart (collective/survivors/agreements.cpp)
};
/// Number of kinds, including the unused value 0.
inline constexpr size_t kKinds = static_cast<size_t>(PacketKind::ballot) + 1;
constexpr bool is_for_messages(PacketKind kind) { return kind <= PacketKind::fragment; }

/// Location of a packet's payload in shared memory, if the payload does not fit into the ring's line. In an inbox, location of any payload.
enum class PayloadLocation : uint16_t {
    here,    ///< the payload is in the ring's bulk area or the inbox's cell
    outbox,  ///< the payload is in the sender's outbox (transport/shm/outbox.h); the packet holds an OutboxPlace instead
};

/// The middle of the header of `eager` and `rendezvous` packets: the envelope of a message.
struct [[gnu::packed, gnu::aligned(4)]] MessageHeader {
    uint32_t sequence;  ///< sequence number, counted per ordered pair of processes
    int32_t tag;
    uint64_t context;
    int32_t source;  ///< the sender's rank, as numbered in the receiver's match context
};

/// The middle of the header of `fragment` packets. Fragments may overtake each other; between hosts they may arrive twice.
struct [[gnu::packed, gnu::aligned(4)]] Fragment {
    /// Generation of the receive, copied from its CTS. 0: the fragment was sent ahead of the CTS and belongs to the last RTS on this ring.
    uint32_t generation;
    uint32_t serial;  ///< request id of the receive; 0 if the fragment was sent ahead of the CTS
    uint64_t offset;  ///< offset of the fragment in the message, bytes
};

/// The middle of the header of `access` packets.
struct [[gnu::packed, gnu::aligned(4)]] AccessHeader {
    uint32_t generation;  ///< generation of the access: distinguishes consecutive accesses with one serial
    uint32_t serial;      ///< request id of the access at the process that started it
    uint64_t offset;      ///< number of bytes of the access that earlier packets carry
};

/// The header of a packet: the first 32 bytes of a ring line and of an inbox cell's packet, and of every packet in a session.
struct alignas(8) Header {
    std::atomic<uint32_t> stamp;  ///< lap of the ring in which the line is valid; unused outside rings
    PacketKind kind;
    uint8_t operation;  ///< kind of an access (rma/packets.h)
    PayloadLocation where;
    union {
        MessageHeader message;
        Fragment fragment;
        AccessHeader access;
    };
    uint32_t bytes;  ///< length of the payload, without padding
};
static_assert(sizeof(Header) == 32 && offsetof(Header, message) == 8 && offsetof(Header, bytes) == 28);
static_assert(offsetof(MessageHeader, context) == 8 && offsetof(Fragment, offset) == 8 && offsetof(AccessHeader, offset) == 8);

}  // namespace starling::packet
