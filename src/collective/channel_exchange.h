// Exchanges over message channels: a communicator's own one, and those that communicators are made with.
#pragma once

#include <vector>

#include "collective/exchange.h"
#include "collective/node_exchange.h"
#include "comm/comm.h"
#include "message/channel.h"

namespace starling::collective {

/// The exchange over a communicator's collective channel, made at first use and kept with it.
Exchange& exchange_of(comm::Comm& comm);

/// What holds the node stage of a communicator.
NodeOwner& stage_of(comm::Comm& comm);

/// An exchange over a channel of which only some ranks take part, under one tag of its own, so that several
/// can be under way on one channel. For one operation at a time.
class TaggedExchange : public Exchange {
  public:
    /// `ranks`: of the participants in the channel, in the order of their numbers. `me`: which of them is
    /// this process.
    TaggedExchange(message::Channel& channel, std::vector<int> ranks, int me, int tag);

    void start_send(message::SendRequest& request, const void* buffer, int64_t count, const datatype::Datatype& type,
                    int destination, int tag) override;
    void start_receive(message::ReceiveRequest& request, void* buffer, int64_t count, const datatype::Datatype& type,
                       int source, int tag) override;

  private:
    message::Channel& channel_;
    std::vector<int> ranks_;
    int tag_;
};

}  // namespace starling::collective
