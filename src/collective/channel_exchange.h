// Exchanges over message channels: each communicator's own exchange, and the exchanges over which communicators are created.
#pragma once

#include <vector>

#include "collective/core/exchange.h"
#include "collective/core/task.h"
#include "collective/shm/stage_owner.h"
#include "comm/comm.h"
#include "message/channel.h"

namespace starling::collective {

/// Returns the exchange over a communicator's collective channel. It is created at first use and owned by the communicator.
Exchange& exchange_of(comm::Comm& comm);

/// Opens the multicast channel of a new communicator whose hints request it from the first call on; call it once the hints are set. Local,
/// except with the scheme `basic`: then the task completes when the leaders of all hosts have answered, or it is known that they will not.
Task open_cast(comm::Comm& comm);

/// Returns the owner of a communicator's shared-memory stage.
NodeOwner& stage_of(comm::Comm& comm);

/// A communicator's exchange as one persistent operation sees it. Members may start persistent operations in different orders, so each
/// operation has tags of its own, and the messages of one start follow those of the previous start. Created by all members in the same order;
/// the communicator outlives it.
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
    void start_marker(message::SendRequest& request, const message::ErrorMarker& marker, int64_t bytes, int destination,
                      int tag) override {
        all_.start_marker(request, marker, bytes, destination, tag);
    }
    bool withdraw(message::ReceiveRequest& request) override { return all_.withdraw(request); }
    void throw_away(uint64_t bytes, int source, int tag) override { all_.throw_away(bytes, source, tag); }
    const HostMap* hosts() override { return all_.hosts(); }
    Cast* turns(int tag) override { return all_.turns(tag); }
    bool each_has_its_host() override { return all_.each_has_its_host(); }
    int ended() override { return all_.ended(); }

  private:
    Exchange& all_;
};

/// An exchange among some ranks of a channel, under a given tag, so that several exchanges can be active on one channel. Serves one
/// operation at a time.
class TaggedExchange : public Exchange {
  public:
    /// `ranks`: the participants' ranks in the channel, in the order of their numbers. `me`: this process's number. `of_all`: all ranks of
    /// the channel take part, so a send or receive is abandoned when any of them has died. Each operation then has a tag of its own, since a
    /// member that has learned of the death skips operations: `tag` plus a multiple of kTags.
    static constexpr int kTags = 4;
    TaggedExchange(message::MatchContext& channel, std::vector<int> ranks, int me, int tag, bool of_all = false);

    void start_send(message::SendRequest& request, const void* buffer, int64_t count, const datatype::Datatype& type,
                    int destination, int tag) override;
    void start_receive(message::ReceiveRequest& request, void* buffer, int64_t count, const datatype::Datatype& type,
                       int source, int tag) override;
    void start_marker(message::SendRequest& request, const message::ErrorMarker& marker, int64_t bytes, int destination,
                      int tag) override;
    bool withdraw(message::ReceiveRequest& request) override;
    void throw_away(uint64_t bytes, int source, int tag) override;

  private:
    int tag_of(int drawn) const { return of_all_ ? tag_ + kTags * ((drawn - first_) & 0xffff) : tag_; }

    message::MatchContext& channel_;
    std::vector<int> ranks_;
    int tag_;
    int first_ = last_tag();  ///< the tag before that of the first operation
    bool of_all_;
};

}  // namespace starling::collective
