// Exchanges over message channels: a communicator's own one, and those that communicators are made with.
#pragma once

#include <vector>

#include "collective/core/exchange.h"
#include "collective/core/task.h"
#include "collective/shm/stage_owner.h"
#include "comm/comm.h"
#include "message/channel.h"

namespace starling::collective {

/// The exchange over a communicator's collective channel, made at first use and kept with it.
Exchange& exchange_of(comm::Comm& comm);

/// What multicast a new communicator is to have from its first call on is opened, when its hints are set. Local, but with the scheme
/// `basic`: then it is over when the leaders of all hosts have answered, or it was found that they will not.
Task open_cast(comm::Comm& comm);

/// What holds the node stage of a communicator.
NodeOwner& stage_of(comm::Comm& comm);

/// A communicator's exchange as one operation sees it that is started again and again, in an order that members need not agree
/// on: all its messages have one tag, and those of one start follow those of the start before. Made by all members in the same
/// order; the communicator outlives it.
class PlanExchange final : public Exchange {
  public:
    explicit PlanExchange(comm::Comm& comm);
    void start_send(message::SendRequest& request, const void* buffer, int64_t count, const datatype::Datatype& type,
                    int destination, int tag) override {
        all_.start_send(request, buffer, count, type, destination, tag);
    }
    void start_receive(message::ReceiveRequest& request, void* buffer, int64_t count, const datatype::Datatype& type,
                       int source, int tag) override {
        all_.start_receive(request, buffer, count, type, source, tag);
    }
    bool withdraw(message::ReceiveRequest& request) override { return all_.withdraw(request); }
    void throw_away(uint64_t bytes, int source, int tag) override { all_.throw_away(bytes, source, tag); }
    const HostMap* hosts() override { return all_.hosts(); }
    int ended() override { return all_.ended(); }

  private:
    Exchange& all_;
};

/// An exchange over a channel of which only some ranks take part, under one tag of its own, so that several
/// can be under way on one channel. For one operation at a time.
class TaggedExchange : public Exchange {
  public:
    /// `ranks`: of the participants in the channel, in the order of their numbers. `me`: which of them is
    /// this process. `of_all`: all of the channel's take part, so nobody waits for one who may have heard of another's death.
    TaggedExchange(message::MatchContext& channel, std::vector<int> ranks, int me, int tag, bool of_all = false);

    void start_send(message::SendRequest& request, const void* buffer, int64_t count, const datatype::Datatype& type,
                    int destination, int tag) override;
    void start_receive(message::ReceiveRequest& request, void* buffer, int64_t count, const datatype::Datatype& type,
                       int source, int tag) override;
    bool withdraw(message::ReceiveRequest& request) override;
    void throw_away(uint64_t bytes, int source, int tag) override;

  private:
    message::MatchContext& channel_;
    std::vector<int> ranks_;
    int tag_;
    bool of_all_;
};

}  // namespace starling::collective
