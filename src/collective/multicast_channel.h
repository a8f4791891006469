// The multicast channel of a communicator's side, as algorithms see it.
#pragma once

#include <vector>

#include "collective/core/multicast_sender.h"
#include "comm/comm.h"

namespace starling::collective {

class ChannelCast final : public Cast {
  public:
    /// `leaders`: of the participants in the communicator's collective channel, one for each host of my side. `mine`: which of
    /// them is this process; -1: none, and it only has to know that there is something.
    ChannelCast(const comm::Comm& comm, const std::vector<int>& leaders, int mine);
    ~ChannelCast() override;
    ChannelCast(const ChannelCast&) = delete;
    ChannelCast& operator=(const ChannelCast&) = delete;

    bool start_send(multicast::Send& send, uint64_t call, const void* data, uint64_t bytes) override;
    bool is_full(uint64_t bytes) const override { return channel_ && multicast::is_full(*channel_, bytes); }
    void start_receive(multicast::Receive& receive, int sender, uint64_t call, void* memory, uint64_t bytes) override;
    bool withdraw(multicast::Receive& receive) override;
    void refuse(multicast::Receive& receive) override;

    /// What there is to wait for before the communicator's creation returns.
    bool settled() const { return !channel_ || multicast::settled(*channel_); }

    /// From which call of a communicator on it has one; no call at all: kNever.
    static int first_call(const comm::Comm& comm);
    static constexpr int kNever = 1 << 30;
    /// With fewer hosts one message more is cheaper than a group.
    static constexpr size_t kFewest = 3;

  private:
    multicast::Channel* channel_ = nullptr;  ///< null: none; what is sent goes by the tree, and nothing comes
};

}  // namespace starling::collective
