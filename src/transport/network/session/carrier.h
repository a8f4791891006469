// What a session sends through beside datagrams: a connection to the same peer.
#pragma once

#include <sys/uio.h>

#include <cstdint>

namespace starling::network {

/// How an attempt to send ended.
enum class Sent : uint8_t {
    done,      ///< taken whole
    busy,      ///< nothing was taken, the carrier is full; it says when there is room (Endpoint::writable)
    gone,      ///< nothing was taken and the carrier takes no more
    too_long,  ///< nothing was taken: longer than the path carries (UDP only)
};

/// A connection that brings frames to the peer whole and in order while it lives (TCP, RC). It may die at any time: the
/// session keeps a copy of all it sends until the peer's session has acknowledged it, whatever carried it, and sends
/// it again another way. Owned by the one that made it, who detaches it before it goes. Not thread-safe.
class Carrier {
  public:
    virtual ~Carrier() = default;

    /// Takes one frame, all of it or nothing: the parts one after the other, at most kMost of them. They are valid
    /// during the call only: what the kernel does not take at once is copied. What the other end gets, it gives to
    /// Endpoint::receive_frame as one piece, its start aligned to 8.
    virtual Sent send(const iovec* parts, int count) = 0;
    static constexpr int kMost = 16;

    /// The peer looks at its sockets but has not got what was sent here a while ago. Whether the network is to blame, as far
    /// as the carrier knows; then the session takes everything back, and the carrier sends no more until its owner attaches it
    /// anew.
    virtual bool stalls(uint64_t now) = 0;

    /// A device's: it repeats by itself what is lost, so acknowledgements of the session only free memory, and nothing arrives sooner
    /// as a datagram. Constant.
    virtual bool by_device() const { return false; }

    /// The most bytes a frame may have; at least 1500. Constant.
    virtual uint32_t frame_limit() const = 0;
};

}  // namespace starling::network
