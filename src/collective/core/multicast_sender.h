// How one process of a host sends to those of all other hosts at once, where the network has groups for it: what algorithms see of
// room multicast, as the exchange is what they see of messages. The real one stands on a communicator's channel (collective/multicast_channel.h);
// unit tests have one of their own.
#pragma once

#include <cstdint>

#include "multicast/channel.h"

namespace starling::collective {

/// Among the leaders of hosts, as numbered by HostMap::leaders; a call goes by the tag of its view. Senders decide alone, call by call,
/// whether they use it, and who expects something waits for either this or the message of a tree: collective/algorithms/leader_broadcast.h.
class Cast {
  public:
    virtual ~Cast() = default;

    /// As the functions of multicast/channel.h.
    virtual bool start_send(multicast::Send& send, uint64_t call, const void* data, uint64_t bytes) = 0;
    virtual bool is_full([[maybe_unused]] uint64_t bytes) const { return false; }
    virtual void start_receive(multicast::Receive& receive, int sender, uint64_t call, void* memory, uint64_t bytes) = 0;
    virtual bool withdraw(multicast::Receive& receive) = 0;
    /// The same, where this call has failed: what comes of the message yet is thrown away, so that its sender need not keep it.
    virtual void refuse(multicast::Receive& receive) = 0;
};

}  // namespace starling::collective
