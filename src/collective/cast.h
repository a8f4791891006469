// How one process of a host sends to those of all other hosts at once, where the network has groups for it: what algorithms see of
// room multicast, as the exchange is what they see of messages. The real one stands on a communicator's channel (channel_cast.h);
// unit tests have one of their own.
#pragma once

#include <algorithm>
#include <cstdint>

#include "multicast/channel.h"

namespace starling::collective {

/// Among the leaders of hosts, as numbered by HostMap::leaders; a call goes by the tag of its view. Senders decide alone, call by call,
/// whether they use it, and who expects something waits for either this or the message of a tree: spread.h.
class Cast {
  public:
    virtual ~Cast() = default;

    /// As the functions of multicast/channel.h.
    virtual bool start_send(multicast::Send& send, uint64_t call, const void* data, uint64_t bytes) = 0;
    virtual void start_receive(multicast::Receive& receive, int sender, uint64_t call, void* memory, uint64_t bytes) = 0;
    virtual bool withdraw(multicast::Receive& receive) = 0;

    /// Whether a call shall be arranged so that it ends with something sent to the group, and would be slower if that
    /// went by the tree. All leaders must come to the same answer though each finds for itself what the group is
    /// worth, so it follows from what they have all seen: by which way the last such blocking call has ended. Where that was not the
    /// group, or there was none, some blocking calls try it again, ever fewer.
    bool expected(int tag, bool blocking) const { return worked_ || (blocking && tag >= next_try_); }
    /// A blocking call has ended with what was sent `by_group` or not; told by all leaders.
    void learn(int tag, bool by_group) {
        if (!by_group && !expected(tag, true)) return;
        worked_ = by_group;
        pause_ = by_group ? 1 : std::min(2 * pause_, kLongestPause);
        next_try_ = tag + pause_;
    }

  private:
    static constexpr int kLongestPause = 1024;
    bool worked_ = false;
    int next_try_ = 0, pause_ = 1;
};

}  // namespace starling::collective
