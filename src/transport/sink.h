// The interfaces by which a transport reports arrivals and failures to the code that uses it (src/link, or a test). A transport calls them
// from inside poll() only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "job/job_segment.h"
#include "transport/connector.h"
#include "transport/packet.h"
#include "transport/stream.h"

namespace starling::transport {

class Path;

/// One packet as it is delivered; valid during the call. `payload` is aligned to 8 bytes, and header.stamp has no meaning.
struct Packet {
    const packet::Header& header;
    const std::byte* payload;
};

/// A sender to which this process has no path.
struct UnknownSender {
    job::JobAddress job;
    uint32_t rank;
};

/// The receiver of packets. `user` is the value that was passed to Transport::attach().
class PacketReceiver {
  public:
    /// Handles a packet. std::bad_alloc means that the next poll delivers the packet again, in order.
    virtual void deliver(void* user, const Packet& packet) = 0;

  protected:
    ~PacketReceiver() = default;
};

/// The receiver of the data of streams (stream.h).
class StreamReceiver {
  public:
    /// Returns where bytes [done, done + bytes) of a stream fragment belong: memory for all of them, or nullptr to pass them to unpack().
    /// It is called before each read. If the receive has completed meanwhile, it returns nullptr, and unpack() ignores the bytes.
    virtual std::byte* target(void* user, const StreamFragment& piece, uint64_t done, uint64_t bytes) = 0;
    virtual void unpack(void* user, const StreamFragment& piece, uint64_t done, const std::byte* data, uint64_t bytes) = 0;
    /// Reports that all bytes of the stream fragment are in place. The fragment may be a duplicate, so its bytes must be counted with
    /// Coverage (stream.h).
    virtual void on_fragment(void* user, const StreamFragment& piece) = 0;

  protected:
    ~StreamReceiver() = default;
};

/// The code that uses a transport. Its functions may reserve, commit and close on any path and attach others, and must not poll or detach.
class Sink : public PacketReceiver, public StreamReceiver {
  public:
    /// Returns the path to an unknown sender, an existing one or one made with attach(). Null: the packet is dropped or, if `later` was
    /// set, stored until a later call returns a path.
    virtual Path* on_unknown_sender(const UnknownSender& caller, bool& later) = 0;
    /// Returns this host's segment of the job to which a packet's sender belongs, valid until the current poll ends. Null: the job is
    /// unknown, or its segment has been requested.
    virtual const job::JobSegment* find_segment(job::JobId) { return nullptr; }
    /// Reports that the path has failed: nothing more arrives by it, and packets sent on it may be lost. failure_text() gives the reason.
    /// The path is already closed.
    virtual void failed(void* user) = 0;
    /// Reports an event of the path's connection.
    virtual void connection(void* user, ConnectionEvent news) = 0;
    /// Requests the address of the path's process, which is not known yet. Call FailureDetection::confirm_alive() once the address is in the
    /// process's segment.
    virtual void locate(void* user) = 0;
    /// Sends a small packet of one of the transport's own kinds as soon as there is room.
    virtual void send(void* user, packet::PacketKind kind, const void* payload, uint32_t bytes) = 0;
    /// Reports that this process has sent something to itself. Wakes this process if another of its threads sleeps.
    virtual void wake() = 0;

  protected:
    ~Sink() = default;
};

}  // namespace starling::transport
