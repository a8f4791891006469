// Pairs local interfaces with the addresses of a peer. Makes no system calls.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "transport/network/tcp/tcp.h"

namespace starling::network {

/// The two addresses of one socket, network byte order. `local` 0: the kernel's routes decide.
struct RailPair {
    uint32_t local = 0, remote = 0;
    bool operator==(const RailPair&) const = default;
};

/// Returns the address pairs to use in parallel: each address of the peer that is in the network of a local interface, with that interface.
/// If several interfaces are in one network, each is used once. If there is no such pair, sets `routed` and returns all addresses of the
/// peer without an interface. One connection is enough then, since all may use the same interface.
std::vector<RailPair> pair_rails(std::span<const TcpRail> rails, std::span<const uint32_t> remotes, bool& routed);

}  // namespace starling::network
