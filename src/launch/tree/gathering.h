// Combines pieces from many hosts on their way up to the root: the inverse of a scatter.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launch/tree/outbox.h"
#include "launch/tree/tree.h"

namespace starling::launch {

/// The payload of a gathered message: pieces of some of the hosts that contribute to its topic. Views point into the decoded bytes.
struct GatheredPayload {
    std::string_view topic;
    HostSet contributors;  ///< all hosts that will contribute a piece to the topic
    bool eager = false;
    std::vector<GatheredPiece> parts;  ///< the pieces, at least one
};

std::string encode(const GatheredPayload& message);
/// Returns false if `bytes` is not exactly one such message; `out` is unspecified then.
bool decode(std::string_view bytes, GatheredPayload& out);

/// The pieces of one topic that a daemon has from itself and from the hosts below, and has not sent up yet. Equal pieces are stored once
/// with their set of hosts, so "started" of a thousand hosts takes a few bytes.
class TopicGathering {
  public:
    /// Stores copies of the pieces. `receipt` is dropped when they have arrived at the root.
    void add(const GatheredPayload& news, DeliveryReceipt receipt);

    /// Returns whether all contributors among `hosts` have contributed, including pieces that were sent up earlier.
    bool complete_for(const HostSet& hosts) const;
    /// Returns whether the pieces must be sent up at once, because they are the first ones of an eager topic.
    bool in_a_hurry() const { return eager_ && !taken_; }
    bool is_eager() const { return eager_; }
    bool empty() const { return parts_.empty(); }
    size_t bytes() const { return bytes_; }

    /// Removes all pieces and returns them as one message. `receipt` is set to their combined receipt.
    std::string receive(std::string_view topic, DeliveryReceipt& receipt);

    // Timers, maintained by the daemon that owns this object.
    EventLoop::TimerId timer = 0;  ///< timer after which incomplete pieces are sent up
    EventLoop::Clock::time_point last_news{};

  private:
    struct GatheredPart {
        HostSet hosts;
        std::string bytes;
    };
    HostSet contributors_, heard_, held_;
    bool eager_ = false, taken_ = false;
    std::vector<GatheredPart> parts_;
    std::vector<DeliveryReceipt> receipts_;
    size_t bytes_ = 0;
};

}  // namespace starling::launch
