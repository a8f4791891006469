// The messages for one neighbor, sent or not. They are stored until all their receivers have them, because a neighbor may die with messages
// that exist only in its memory.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "launch/tree/messages.h"

namespace starling::launch {

/// Receipt for a message that another hop has sent. When the last copy is dropped, that hop is informed of the message's arrival.
using DeliveryReceipt = std::shared_ptr<void>;

class TreeOutbox {
  public:
    struct OutboxMessage {
        std::shared_ptr<const Content> content;
        HostSet to;
        DeliveryReceipt receipt;
    };

    void push(OutboxMessage message);

    /// Returns the next message to send; null if there is none, or if only bulk messages are left and the window is full.
    std::shared_ptr<const Content> next(MessageHead& head);

    /// Handles the neighbor's acknowledgement of messages `first` to `last`. Returns false if some were never sent, which is a protocol
    /// error of the neighbor.
    bool done(Urgency urgency, uint64_t first, uint64_t last);

    /// Marks all messages that have not arrived to be sent again in order, on a new connection.
    void restart();

    /// Removes `hosts` from the receivers of all messages, and returns the messages for them in order.
    std::vector<OutboxMessage> extract(const HostSet& hosts);

    bool empty() const { return lanes_[0].entries.empty() && lanes_[1].entries.empty(); }

    /// Bulk bytes that may be in flight before the receivers acknowledge the first. This also limits the bytes that a hop stores for a
    /// neighbor.
    static constexpr size_t kBulkWindow = 1 << 20;

  private:
    struct QueuedMessage {
        OutboxMessage message;
        bool sent = false;
        bool done = false;
    };
    struct PriorityLane {
        std::deque<QueuedMessage> entries;
        uint64_t first = 1;  ///< message number of entries.front(); numbers are consecutive
        size_t next = 0;     ///< index of the first entry that is not sent yet
    };

    PriorityLane& lane(Urgency urgency) { return lanes_[static_cast<size_t>(urgency)]; }
    void finish(PriorityLane& lane, QueuedMessage& entry);
    void trim(PriorityLane& lane);

    PriorityLane lanes_[2];
    size_t bulk_in_flight_ = 0;
};

}  // namespace starling::launch
