#include "transport/network/tcp/rails.h"

namespace starling::network {

std::vector<RailPair> pair_rails(std::span<const TcpRail> rails, std::span<const uint32_t> remotes, bool& routed) {
    std::vector<RailPair> pairs;
    std::vector<bool> used(rails.size());
    for (const uint32_t remote : remotes) {
        size_t found = rails.size();
        bool any_network = false;
        for (size_t i = 0; i < rails.size(); ++i) {
            if (rails[i].netmask == 0 || (rails[i].address ^ remote) & rails[i].netmask) continue;
            any_network = true;
            if (!used[i] && found == rails.size()) found = i;
        }
        if (!any_network || found == rails.size()) continue;
        used[found] = true;
        pairs.push_back({rails[found].address, remote});
    }
    routed = pairs.empty();
    if (routed)
        for (const uint32_t remote : remotes) pairs.push_back({0, remote});
    return pairs;
}

}  // namespace starling::network
