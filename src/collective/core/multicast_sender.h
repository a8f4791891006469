// Multicast as algorithms see it: one process of a host sends to the leaders of all other hosts at once, where the network has groups for
// it. The real sender uses a communicator's channel (collective/multicast_channel.h); unit tests replace it.
#pragma once

#include <cstdint>

#include "collective/core/way_meter.h"
#include "multicast/channel.h"

namespace starling::collective {

/// Multicast among the leaders of hosts, numbered as in HostMap::leaders; a call is identified by the tag of its view. A sender decides
/// alone, call by call, whether it uses multicast. So a receiver waits for both the multicast and a message down a tree
/// (collective/algorithms/leader_broadcast.h).
class Cast {
  public:
    virtual ~Cast() = default;

    /// Virtual functions with the meaning of those of the same name in multicast/channel.h.
    virtual bool start_send(multicast::MulticastSend& send, uint64_t call, const void* data, uint64_t bytes) = 0;
    virtual bool is_full([[maybe_unused]] uint64_t bytes) const { return false; }
    virtual bool is_ready() const = 0;
    virtual void hasten() {}
    /// Returns the choices between the ways of long allgathers, and whether measured times decide. Calls of leaders alone have choices of
    /// their own, because the other members do not count them.
    virtual WayMeter& ways(bool among_leaders) = 0;
    virtual bool measures() const { return false; }
    virtual void start_receive(multicast::MulticastReceive& receive, int sender, uint64_t call, void* memory,
                               uint64_t bytes) = 0;
    virtual bool withdraw(multicast::MulticastReceive& receive) = 0;
    /// Withdraws the receive of a failed call. Fragments that still arrive are discarded, so that their sender need not keep them.
    virtual void refuse(multicast::MulticastReceive& receive) = 0;
};

}  // namespace starling::collective
