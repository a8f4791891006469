// The interface of multicast groups, by which one datagram reaches all members: Transport::groups().
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace starling::transport {

/// The name by which all members join the same group.
struct GroupName {
    uint64_t place = 0;       ///< groups with the same `place` may share a network address
    uint64_t key = 0;         ///< unique key of the group, not 0: its datagrams carry the key, and others are dropped
    uint64_t secret[4] = {};  ///< secret known to the members only, with which they encrypt the group's datagrams
};

/// The receiver of a group's datagrams, called from inside poll() only. It may send, and must neither join nor leave.
class DatagramHandler {
  public:
    /// Handles a datagram of a member; `data` is valid during the call. A datagram may arrive twice, late or never, and may be one that
    /// this process sent.
    virtual void datagram(const std::byte* data, uint32_t bytes) = 0;

  protected:
    ~DatagramHandler() = default;
};

/// This process's membership in a group; the destructor leaves the group.
class MulticastMembership {
  public:
    MulticastMembership() = default;
    MulticastMembership(const MulticastMembership&) = delete;
    MulticastMembership& operator=(const MulticastMembership&) = delete;
    virtual ~MulticastMembership() = default;

    /// Sends an unreliable datagram, at most MulticastGroups::payload() bytes in at most three parts, to all other members. Returns false
    /// if there is no room now.
    virtual bool send(const iovec* parts, int count) = 0;
    /// Sends the datagrams that were held back so that the kernel takes several in one call.
    virtual void flush() {}
    /// Reports that a member receives nothing that is sent: the group switches to another rail, if there is one.
    virtual void report_unreachable() {}
};

class MulticastGroups {
  public:
    /// Makes this process a member of the named group, without a handshake: it receives the other members' datagrams from some later
    /// moment, which is not reported. Returns an MPI error class with failure_text() if the network has no groups, or no more of them.
    virtual int join(const GroupName& name, DatagramHandler& audience, std::unique_ptr<MulticastMembership>& out) = 0;
    /// Returns the longest datagram to a group, in bytes.
    virtual uint32_t payload() const = 0;

  protected:
    ~MulticastGroups() = default;
};

}  // namespace starling::transport
