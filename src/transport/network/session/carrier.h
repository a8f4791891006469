// The interface between a session and a connection to the same peer, which carries the session's frames beside or instead of datagrams.
#pragma once

#include <sys/uio.h>

#include <cstdint>

namespace starling::network {

/// The result of an attempt to send.
enum class SendResult : uint8_t {
    done,      ///< the carrier has taken the whole frame
    busy,      ///< nothing was taken, the carrier is full; Endpoint::writable follows when there is room
    closed,    ///< nothing was taken, and the carrier has closed
    too_long,  ///< nothing was taken: the datagram is longer than the path allows (UDP only)
};

/// A connection (TCP, RC) that delivers frames to the peer whole and in order while it lives. It may die at any time: the session keeps a
/// copy of everything until the peer's session has acknowledged it, and then sends it again another way. Its creator owns it and detaches
/// it from the session before destroying it. Not thread-safe.
class Carrier {
  public:
    virtual ~Carrier() = default;

    /// Sends one frame, consisting of at most kMost consecutive parts, either whole or not at all. The parts are valid during the call
    /// only, so bytes that the kernel does not take at once are copied. The receiving carrier passes the frame to Endpoint::receive_frame
    /// as one block, aligned to 8 bytes.
    virtual SendResult send(const iovec* parts, int count) = 0;
    static constexpr int kMost = 16;

    /// Handles a stall: the peer polls its sockets but has not acknowledged frames sent here a while ago. Returns whether the network is at
    /// fault, as far as the carrier knows. If it is, the session sends everything again another way, and the carrier sends nothing until
    /// its owner attaches it again.
    virtual bool stalls(uint64_t now) = 0;

    /// Returns whether a device carries the frames. A device retransmits lost data itself, so the session's acknowledgements only free
    /// memory, and nothing arrives sooner as a datagram. Constant.
    virtual bool by_device() const { return false; }

    /// Returns the longest frame in bytes, at least 1500. Constant.
    virtual uint32_t frame_limit() const = 0;
};

}  // namespace starling::network
