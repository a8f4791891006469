// The exchange, the only interface of a collective algorithm to other processes. It has numbered participants, messages between them that
// match in order per pair and tag, and (for inter-communicators) the ranges of both sides. The real one uses a communicator's collective
// channel; unit tests run the algorithms on a simulated one.
#pragma once

#include <cstdint>
#include <memory>

#include "base/counter_start.h"
#include "collective/algorithm_override.h"
#include "collective/core/host_map.h"
#include "datatype/datatype.h"
#include "message/request.h"

namespace starling::message {
struct ErrorMarker;
}

namespace starling::collective {

class Cast;

/// Participants 0 … size-1. For an intra-communicator these are its ranks. For an inter-communicator they are both groups, one after the
/// other, in an order on which all members agree. The local side is [local_base, local_base + local_size), the other [remote_base,
/// remote_base + remote_size).
class Exchange {
  public:
    virtual ~Exchange() = default;

    int size = 0;
    int rank = 0;  ///< number of this process, in 0 … size-1
    int local_base = 0, local_size = 0;
    int remote_base = 0, remote_size = 0;  ///< range of the other side; both 0 in an intra-communicator

    bool inter() const { return remote_size != 0; }

    /// Start a send or a receive. `request` lives until it is done (in the awaiting coroutine's frame) and is completed by the engine; it
    /// may be done already on return. Messages of one pair with one tag match in the order in which they were started. A received message
    /// longer than the buffer completes with MPI_ERR_TRUNCATE.
    virtual void start_send(message::SendRequest& request, const void* buffer, int64_t count, const datatype::Datatype& type,
                            int destination, int tag) = 0;
    virtual void start_receive(message::ReceiveRequest& request, void* buffer, int64_t count, const datatype::Datatype& type,
                               int source, int tag) = 0;
    /// Starts to send an error marker of `bytes` bytes. Its receiver may never receive it, so the send waits for nobody.
    virtual void start_marker(message::SendRequest& request, const message::ErrorMarker& marker, int64_t bytes, int destination,
                              int tag) = 0;

    /// Returns which participants of the local side share a host; null if two-level algorithms make no sense. Lasts as long as the
    /// exchange.
    virtual const HostMap* hosts() { return nullptr; }

    /// Cancels a receive that has not been matched. Returns false if it has been.
    virtual bool withdraw(message::ReceiveRequest& request) = 0;

    /// Receives the next message of that source and tag, whenever it arrives, into a buffer of `bytes` bytes, and discards it. Used where
    /// this member's part has failed and the sender, which cannot know that, would wait for a receive.
    virtual void throw_away(uint64_t bytes, int source, int tag) = 0;

    /// Checks for ended participants and returns one; -1: none is known to have ended.
    virtual int ended() { return -1; }

    /// Returns the multicast channel of the local side's leaders (all processes, if no two share a host); null: none, or it does not pay
    /// yet. All members get the same answer for the call with the same tag.
    virtual Cast* cast([[maybe_unused]] int tag) { return nullptr; }
    /// Returns the multicast channel for long data that all leaders send in turns; null: none. Such an operation measures what pays, and is
    /// synchronized by messages, so persistent operations have the channel, too. All members get the same answer for one tag.
    virtual Cast* turns([[maybe_unused]] int tag) { return nullptr; }
    /// Returns whether the local side has several hosts and no two of its participants share one.
    virtual bool each_has_its_host() { return false; }

    /// Returns the override of the algorithm table; null: the table chooses.
    AlgorithmOverride* steering() const { return steering_.get(); }

    /// Draws the tag of the next collective operation. Every participant starts the collectives of a communicator in the same order, so all
    /// draw the same tag.
    int next_tag() {
        ++ticket_;
        return one_tag_ ? one_tag_ | static_cast<int>(ticket_ % kPlanTags) : last_tag();
    }
    /// Returns the number of the operation with that tag among the multicasts of the communicator. Unlike the tag it differs for each start of
    /// a persistent operation.
    uint64_t call_number(int tag) const {
        return one_tag_ ? static_cast<uint64_t>(last_tag()) << 32 | static_cast<uint64_t>(tag) : static_cast<uint64_t>(tag);
    }
    /// Draws the first tag of a persistent operation, whose starts use it and the next ones by turns: a member may enter a start while
    /// another still has unmatched receives of the previous one. Between the two, the members may create the operation's shared-memory
    /// stage, which draws a tag too, so two tags are too few. All participants draw these in the same order. The tags differ from those of
    /// other operations.
    int draw_plan_tag() { return static_cast<int>(0x40000000 | (++plans_ * kPlanTags & (kSecondTag - 1))); }
    /// Returns another tag of the same operation. Messages under it do not match receives of the first tag, such as those of a broadcast that
    /// arrived by multicast and whose receive of a message is not yet withdrawn.
    static int second_tag(int tag) { return tag | kSecondTag; }
    /// Returns the tag that was drawn last.
    int last_tag() const { return static_cast<int>(ticket_ & (kSecondTag - 1)); }
    /// Returns the number of operations that the program has called; those that the library started for itself are not counted.
    uint32_t calls() const { return ticket_ - own_; }
    void last_was_own() { ++own_; }

  protected:
    Exchange() = default;
    /// Copies the participants, without the override of the table.
    Exchange(const Exchange& other)
        : size(other.size),
          rank(other.rank),
          local_base(other.local_base),
          local_size(other.local_size),
          remote_base(other.remote_base),
          remote_size(other.remote_size) {}

    int one_tag_ = 0;  ///< first tag of the persistent operation that this exchange serves; 0: each operation draws its own tag
    std::unique_ptr<AlgorithmOverride> steering_;

  private:
    static constexpr int kSecondTag = 0x20000000;
    static constexpr uint32_t kPlanTags =
        4;  ///< tags of a persistent operation; a power of two, so that they differ while tickets wrap
    uint32_t ticket_ = kCounterStart, own_ = kCounterStart, plans_ = kCounterStart;
};

}  // namespace starling::collective
