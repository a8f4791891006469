// The interface by which link opens and closes a transport's connections: Transport::connector().
#pragma once

#include <cstddef>
#include <cstdint>

#include "transport/packet.h"

namespace starling::transport {

class Path;

/// A connection is a dedicated path to one peer, opened when traffic justifies it; packets then take it instead of the base path. One
/// exchange of packets on the base path opens a connection, and closing it frees its slot. link/connection decides when to open and close,
/// by the same state machine for all transports, and calls the functions below. A transport has a limited number of connection slots.
class Connector {
  public:
    /// Returns whether recent traffic with one process justifies a connection: `packets` packets, and `bytes` bytes of long messages.
    virtual bool earned(uint32_t packets, uint64_t bytes) const = 0;
    /// Returns whether `messages` messages of `bytes` bytes in all are faster on a connection than on the base path.
    virtual bool speeds_up(uint64_t messages, uint64_t bytes) const { return (void)messages, (void)bytes, true; }
    virtual bool has_place() = 0;
    virtual void acquire_slot(Path& path) = 0;
    /// Writes the payload of a packet `open` or `accept`, which describes this end of the connection to the peer: at most kOffer bytes.
    /// Returns its length.
    static constexpr uint32_t kOffer = 32;
    virtual uint32_t describe(Path& path, packet::PacketKind kind, std::byte* offer) = 0;
    /// Returns whether `offer`, padded with zeros, is a payload that a peer's describe() can have written.
    virtual bool is_offer(const std::byte* offer) const = 0;
    /// Starts to connect to the peer that has sent the payload `offer` in an `open` or `accept` packet. Later the event `ready` reports
    /// that the connection carries packets, or `broken` that it failed. The event may occur within the call.
    virtual void use(Path& path, packet::PacketKind kind, const std::byte* offer) = 0;
    /// Sends the last packet on the connection; later packets take the base path.
    virtual void finish(Path& path) = 0;
    /// Frees the slot and all resources of the connection, whatever its state.
    virtual void release_slot(Path& path) = 0;
    /// Reports that the peer cannot open the connection, for another reason than a lack of slots. release_slot() follows.
    virtual void failed_there(Path&) {}
    /// Sets the number of messages that a plan expects to be exchanged with the peer in the current phase, both directions together; 0: the
    /// plan does not name the peer. The number decides which peers get the transport's scarce resources other than connection slots.
    virtual void set_expected_traffic(Path& path, uint32_t messages) { (void)path, (void)messages; }
    /// Calls `visit` with the user of each path that has a slot.
    virtual void each_user(void (*visit)(void* user, void* argument), void* argument) = 0;

  protected:
    ~Connector() = default;
};

enum class ConnectionEvent : uint8_t {
    ready,      ///< the connection carries packets
    ended,      ///< the peer has finished: everything it sent on the connection was delivered
    broken,     ///< the connection did not open, or died
    surpassed,  ///< a connection of a better kind than the open one has become possible
};

}  // namespace starling::transport
