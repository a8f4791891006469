// Adapters and cables of the simulated network, in worlds that predict times. An adapter sends its bytes one message after the other, and
// receives them likewise, so messages wait for those before them. The cables of a leaf switch to the other switches are shared by its
// hosts. A message begins to arrive one latency after its first byte was sent: switches forward packets before their last byte has come.
#pragma once

#include <cstdint>
#include <list>
#include <unordered_map>
#include <utility>
#include <vector>

#include "prices.h"

namespace starling::simulation {

/// A line that carries one message at a time.
class Line {
  public:
    explicit Line(double bytes_per_ns) : bytes_per_ns_(bytes_per_ns) {}

    /// Sends `bytes` that are ready at `from`, behind all earlier messages. Returns when its first byte is sent, ns.
    uint64_t begin(uint64_t from, uint64_t bytes);
    /// Returns when the last byte of all messages is sent, ns.
    uint64_t end() const;

  private:
    double bytes_per_ns_;
    double free_ = 0;  ///< when the line is free, ns
};

/// The connections that a device remembers: the most recently used ones.
class ConnectionCache {
  public:
    explicit ConnectionCache(uint64_t room) : room_(room) {}
    /// Uses a connection; returns whether the device remembered it.
    bool use(uint32_t connection);

  private:
    uint64_t room_;
    std::list<uint32_t> recent_;
    std::unordered_map<uint32_t, std::list<uint32_t>::iterator> places_;
};

class Adapters {
  public:
    Adapters(uint32_t hosts, const Prices& of);

    struct Transfer {
        uint64_t sent;     ///< when the sender's adapter has sent the last byte, ns
        uint64_t arrives;  ///< when the receiver's adapter has received it
    };
    /// Sends a message of `bytes` that is ready at `now`; `latency` is that of its path.
    Transfer send(uint32_t from, uint32_t to, uint64_t bytes, uint64_t now, uint64_t latency);

    /// The time in which a line carries a message.
    struct Span {
        uint64_t first, last;
    };
    /// A message to one or more hosts. Its sender and each cable carry it once, since the switches copy it.
    struct Sending {
        uint32_t from;
        uint64_t bytes;  ///< with all headers
        uint64_t latency;
        Span adapter;                                      ///< at the sender
        std::vector<std::pair<uint32_t, Span>> switches{};  ///< leaf switches that the message has reached
        uint64_t sent() const { return adapter.last; }
    };
    /// Passes a message through its sender's adapter; parameters as for send().
    Sending begin(uint32_t from, uint64_t bytes, uint64_t now, uint64_t latency);
    /// Returns when the receiver `to` has all of the message.
    uint64_t reach(Sending& what, uint32_t to);
    /// Returns the delay by the caches of both devices.
    uint64_t look_up(uint32_t from, uint32_t from_queue, uint32_t to, uint32_t to_queue);

    uint64_t misses = 0;

  private:
    struct Ends {
        Line out, in;
    };
    bool are_apart(uint32_t from, uint32_t to) const;
    Span reach_switch(Sending& what, uint32_t leaf);

    const Prices& of_;
    std::vector<Ends> hosts_, switches_;
    std::vector<ConnectionCache> caches_;
};

}  // namespace starling::simulation
