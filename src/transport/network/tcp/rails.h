// Which local interface connects to which of a peer's addresses. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "transport/network/tcp/tcp.h"

namespace starling::network {

/// A way for one socket. `local` 0: whatever the kernel's routes say.
struct RailPair {
    uint32_t local = 0, remote = 0;
    bool operator==(const RailPair&) const = default;
};

/// Ways to use side by side: each of the peer's addresses that lies in the network of one of our interfaces, with that
/// interface; of several in one network each is used once. If there is none, `routed` is set and the peer's addresses
/// are given as they are: one of them is enough, since all may lead over the same interface.
std::vector<RailPair> pair_rails(std::span<const TcpRail> rails, std::span<const uint32_t> remotes, bool& routed);

}  // namespace starling::network
