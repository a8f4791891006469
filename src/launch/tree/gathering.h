// What many hosts have to tell the root about one thing, put together on the way up: the mirror image of a scatter.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launch/tree/outbox.h"
#include "launch/tree/tree.h"

namespace starling::launch {

/// The payload of a gathered message: pieces of some of the hosts that contribute to its topic. Views point into
/// whatever it was decoded from.
struct Gathered {
    std::string_view topic;
    HostSet contributors;  ///< all that there will be
    bool eager = false;
    std::vector<GatheredPiece> pieces;  ///< at least one
};

std::string encode(const Gathered& message);
/// False if `bytes` is not exactly one such message; `out` is then unspecified.
bool decode(std::string_view bytes, Gathered& out);

/// What has come to a daemon on one topic, from itself and from below, and has not gone up yet. Equal pieces are kept
/// once, for a set of hosts: "started" of a thousand of them is a few bytes.
class Gathering {
  public:
    /// Keeps copies. The receipt is dropped when the pieces have arrived at the root.
    void add(const Gathered& news, Receipt receipt);

    /// Whether all contributors among these hosts have told, be it that it has gone up already.
    bool complete_for(const HostSet& hosts) const;
    /// The first of an eager one goes up at once.
    bool in_a_hurry() const { return eager_ && !taken_; }
    bool is_eager() const { return eager_; }
    bool empty() const { return pieces_.empty(); }
    size_t bytes() const { return bytes_; }

    /// Takes out everything, as a message; its receipt is theirs together.
    std::string take(std::string_view topic, Receipt& receipt);

    // For the daemon.
    EventLoop::TimerId timer = 0;  ///< then it goes up as it is
    EventLoop::Clock::time_point last_news{};

  private:
    struct GatheredPart {
        HostSet hosts;
        std::string bytes;
    };
    HostSet contributors_, heard_, held_;
    bool eager_ = false, taken_ = false;
    std::vector<GatheredPart> pieces_;
    std::vector<Receipt> receipts_;
    size_t bytes_ = 0;
};

}  // namespace starling::launch
