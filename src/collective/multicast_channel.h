// The multicast channel among the leaders of a communicator's side, as algorithms see it.
#pragma once

#include <climits>
#include <vector>

#include "collective/core/multicast_sender.h"
#include "comm/comm.h"

namespace starling::collective {

class ChannelCast final : public Cast {
  public:
    /// `leaders`: participants in the communicator's collective channel, one per host of this side. `mine`: this process's index among
    /// them; -1: it is not a leader, and only knows that the communicator has multicast.
    ChannelCast(const comm::Comm& comm, const std::vector<int>& leaders, int mine);
    ~ChannelCast() override;
    ChannelCast(const ChannelCast&) = delete;
    ChannelCast& operator=(const ChannelCast&) = delete;

    bool start_send(multicast::MulticastSend& send, uint64_t call, const void* data, uint64_t bytes) override;
    bool is_full(uint64_t bytes) const override { return channel_ && multicast::is_full(*channel_, bytes); }
    bool is_ready() const override { return channel_ && multicast::is_ready(*channel_); }
    void hasten() override {
        if (channel_) multicast::hasten(*channel_);
    }
    WayMeter& ways(bool among_leaders) override { return ways_[among_leaders]; }
    bool measures() const override { return measures_; }
    void start_receive(multicast::MulticastReceive& receive, int sender, uint64_t call, void* memory, uint64_t bytes) override;
    bool withdraw(multicast::MulticastReceive& receive) override;
    void refuse(multicast::MulticastReceive& receive) override;

    /// Returns whether the communicator's creation may return (multicast::settled()).
    bool settled() const { return !channel_ || multicast::settled(*channel_); }

    /// Returns whether any call of the communicator may use multicast: neither scheme nor encryption forbids it.
    static bool may_exist(const comm::Comm& comm);
    /// Returns the number of the communicator's first call that may use multicast; kNever: none may. `of_one_job`: whether all participants belong
    /// to one job.
    static int first_call(const comm::Comm& comm, bool of_one_job);
    static constexpr int kNever = INT_MAX;  ///< above the tags of persistent operations too
    /// Fewest hosts for which multicast is used. With fewer hosts, one additional message is cheaper than a multicast group.
    static constexpr size_t kFewest = 3;
    /// Returns whether barriers, broadcasts, short reductions and short allgathers over that many hosts use multicast (docs/multicast.md, "When
    /// groups pay"). The scheme `auto` has no measured times for them.
    static bool pays_for_short(const comm::Comm& comm, size_t hosts);

  private:
    const bool measures_;  ///< whether measured times choose the way of long allgathers
    WayMeter ways_[2];
    multicast::Channel* channel_ = nullptr;  ///< channel of the multicast group; null: no multicast, so sends use the tree
};

}  // namespace starling::collective
