// How a process is reached by InfiniBand or RoCE, as it tells its peers (packet kind `ports`), and which of our ports to use with which of
// theirs. Pure.
#pragma once

#include <cstddef>
#include <cstdint>

#include "transport/verbs/device.h"
#include "transport/verbs/ports.h"

namespace starling::network {

/// All usable ports of a process, in place of what it told before. On the wire: the addresses as they are, one after the other.
struct PortAddresses {
    static constexpr uint32_t kMost = verbs::Ports::kMost;
    static constexpr uint32_t kMostBytes = kMost * sizeof(verbs::Address);

    verbs::Address at[kMost];
    uint32_t count = 0;

    /// False if no process tells such a thing.
    static bool decode(const std::byte* payload, uint32_t bytes, PortAddresses& out);
};

/// Datagrams have to be so long, so that the longest header and something behind it fit.
inline constexpr uint32_t kLeastVerbsDatagram = 1024;

/// A port of ours and one of theirs.
struct PortPair {
    uint16_t ours, theirs;  ///< index
};

/// Pairs ports of one kind of network, at most `most`, each used once: where there are several networks, those whose addresses (GIDs)
/// agree longest. `ours` without a queue is none. Both sides need not come to the same.
int pair_ports(const verbs::Address* ours, uint32_t count, const PortAddresses& theirs, PortPair* pairs, int most);

}  // namespace starling::network
