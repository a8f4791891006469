// The exchange: all that a collective algorithm sees of the world. Numbered participants, messages
// between them matched in order per pair and tag, and (for inter-communicators) which of them are on my
// side. The real one stands on a communicator's collective channel; unit tests run the algorithms on a
// simulated one.
#pragma once

#include <cstdint>
#include <memory>

#include "base/counter_start.h"
#include "collective/algorithm_override.h"
#include "collective/core/host_map.h"
#include "datatype/datatype.h"
#include "message/request.h"

namespace starling::collective {

class Cast;

/// Participants 0 … size-1. For an intra-communicator these are its ranks. For an inter-communicator they
/// are both groups, one after the other, in an order that all members agree on: my side is [local_base,
/// local_base + local_size), the other [remote_base, remote_base + remote_size).
class Exchange {
  public:
    virtual ~Exchange() = default;

    int size = 0;
    int rank = 0;  ///< me, in 0 … size-1
    int local_base = 0, local_size = 0;
    int remote_base = 0, remote_size = 0;  ///< 0, 0 in an intra-communicator

    bool inter() const { return remote_size != 0; }

    /// Starts a send or a receive. `request` lives until it is done (in the awaiting coroutine's frame) and
    /// is completed by the engine; it may be done already on return. Messages of one pair with one tag
    /// match in the order in which they were started. A received message longer than the buffer gives
    /// MPI_ERR_TRUNCATE.
    virtual void start_send(message::SendRequest& request, const void* buffer, int64_t count, const datatype::Datatype& type,
                            int destination, int tag) = 0;
    virtual void start_receive(message::ReceiveRequest& request, void* buffer, int64_t count, const datatype::Datatype& type,
                               int source, int tag) = 0;

    /// How my side lies on hosts; null if two levels make no sense for it. Lasts as long as the exchange.
    virtual const HostMap* hosts() { return nullptr; }

    /// Takes a receive back that nothing has been matched with. False: something has.
    virtual bool withdraw(message::ReceiveRequest& request) = 0;

    /// Takes the next message from there and throws it away, whenever it comes, with room for so many bytes of it: for a sender who
    /// can't know that this member's part has failed, and would wait for its receive.
    virtual void throw_away(uint64_t bytes, int source, int tag) = 0;

    /// A participant that is known to have ended, looked up now; -1: none.
    virtual int ended() { return -1; }

    /// With what the leaders of my side's hosts, each process where each has a host of its own, send to all of themselves at once; null:
    /// nothing, or it doesn't pay yet. All members get the same answer for the call with the same tag.
    virtual Cast* cast([[maybe_unused]] int tag) { return nullptr; }
    /// Whether no two of my side share a host, and there are several.
    virtual bool each_has_its_host() { return false; }

    /// What chooses algorithms instead of the table; null: nothing does.
    AlgorithmOverride* steering() const { return steering_.get(); }

    /// The tag of the next collective operation. Every participant starts the collectives of a communicator
    /// in the same order, so they all draw the same one.
    int next_tag() {
        ++ticket_;
        return one_tag_ ? one_tag_ : last_tag();
    }
    /// A tag for an operation that is started again and again, drawn where all draw it in the same order: none of next_tag()'s.
    int draw_plan_tag() { return static_cast<int>(0x40000000 | (++plans_ & 0x3fffffff)); }
    /// The tag that was drawn last.
    int last_tag() const { return static_cast<int>(ticket_ & 0x3fffffff); }
    /// How many operations the program has called: all, but for those that the library drew for itself.
    uint32_t calls() const { return ticket_ - own_; }
    void last_was_own() { ++own_; }

  protected:
    Exchange() = default;
    /// The same participants; nothing chooses algorithms for it.
    Exchange(const Exchange& other)
        : size(other.size),
          rank(other.rank),
          local_base(other.local_base),
          local_size(other.local_size),
          remote_base(other.remote_base),
          remote_size(other.remote_size) {}

    int one_tag_ = 0;  ///< of all operations, one after the other, on this exchange; 0: each has its own
    std::unique_ptr<AlgorithmOverride> steering_;

  private:
    uint32_t ticket_ = kCounterStart, own_ = kCounterStart, plans_ = kCounterStart;
};

}  // namespace starling::collective
