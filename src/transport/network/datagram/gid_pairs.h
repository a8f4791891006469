// The list of InfiniBand and RoCE ports that a process sends to its peers (packet kind `ports`), and the pairing of our ports with the
// peer's. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "transport/verbs/device.h"
#include "transport/verbs/ports.h"

namespace starling::network {

/// All usable ports of a process. A received list replaces the sender's earlier one. On the wire: the addresses in their memory layout, one
/// after the other.
struct PortAddresses {
    static constexpr uint32_t kMost = verbs::Ports::kMost;
    static constexpr uint32_t kMostBytes = kMost * sizeof(verbs::VerbsAddress);

    verbs::VerbsAddress at[kMost];
    uint32_t count = 0;

    /// Decodes a received list. Returns false if no process can have sent it.
    static bool decode(const std::byte* payload, uint32_t bytes, PortAddresses& out);
};

/// The least datagram length of a usable port, bytes: the longest header and some data must fit.
inline constexpr uint32_t kLeastVerbsDatagram = 1024;

/// A pair of ports, given by the index of our port and of the peer's.
struct PortPair {
    uint16_t ours, theirs;  ///< index
};

/// Pairs at most `most` ports of the same kind of network, each used once, and returns the number of pairs. If there are several networks,
/// ports with the longest common prefix of their addresses (GIDs) are paired. An entry of `ours` without a queue is skipped. The two sides
/// need not choose the same pairs.
int pair_ports(const verbs::VerbsAddress* ours, uint32_t count, const PortAddresses& theirs, PortPair* pairs, int most);

}  // namespace starling::network
