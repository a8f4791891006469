// The messages that one neighbour has been or is to be given, kept until all their receivers have them: a
// neighbour that dies may have had them in its memory only.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "launch/tree/messages.h"

namespace starling::launch {

/// Dropping the last copy tells where the message came from that it has arrived.
using Receipt = std::shared_ptr<void>;

class Outbox {
  public:
    struct Message {
        std::shared_ptr<const Content> content;
        HostSet to;
        Receipt receipt;
    };

    void push(Message message);

    /// The next one to send; null if there is none, or only bulk ones and the receivers are behind.
    std::shared_ptr<const Content> next(MessageHead& head);

    /// The neighbour says that these have arrived. False if they have never been sent: it lies.
    bool done(Urgency urgency, uint64_t first, uint64_t last);

    /// The connection is a new one: everything that has not arrived is to be sent again, in order.
    void restart();

    /// Takes out what is for `hosts`, in order; what is for others too stays for those.
    std::vector<Message> take(const HostSet& hosts);

    bool empty() const { return lanes_[0].entries.empty() && lanes_[1].entries.empty(); }

    /// Bulk bytes that are sent before the receivers have the first of them: the most a hop holds for a neighbour.
    static constexpr size_t kBulkWindow = 1 << 20;

  private:
    struct Entry {
        Message message;
        bool sent = false;
        bool done = false;
    };
    struct Lane {
        std::deque<Entry> entries;
        uint64_t first = 1;  ///< the number of entries.front(); they are consecutive
        size_t next = 0;     ///< index of the first that has not been sent
    };

    Lane& lane(Urgency urgency) { return lanes_[static_cast<size_t>(urgency)]; }
    void finish(Lane& lane, Entry& entry);
    void trim(Lane& lane);

    Lane lanes_[2];
    size_t bulk_in_flight_ = 0;
};

}  // namespace starling::launch
