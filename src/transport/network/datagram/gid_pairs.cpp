#include "transport/network/datagram/gid_pairs.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace starling::network {

namespace {

/// Returns the length of the common prefix of two GIDs, in bits.
int common_bits(const verbs::VerbsAddress& a, const verbs::VerbsAddress& b) {
    for (int i = 0; i < 16; ++i)
        if (a.gid[i] != b.gid[i]) return 8 * i + std::countl_zero(static_cast<uint8_t>(a.gid[i] ^ b.gid[i]));
    return 128;
}

bool is_port_address(const verbs::VerbsAddress& address) {
    const bool any = std::any_of(std::begin(address.gid), std::end(address.gid), [](uint8_t byte) { return byte != 0; });
    // Queues 0 and 1 belong to the subnet manager; queue numbers have 24 bits.
    return any && address.queue > 1 && address.queue < 1u << 24 && address.mtu_log >= 8 && address.mtu_log <= 16;
}

}  // namespace

bool PortAddresses::decode(const std::byte* payload, uint32_t bytes, PortAddresses& out) {
    out.count = 0;
    if (bytes % sizeof(verbs::VerbsAddress) != 0 || bytes > kMostBytes) return false;
    if (bytes != 0) std::memcpy(out.at, payload, bytes);
    const uint32_t count = bytes / static_cast<uint32_t>(sizeof(verbs::VerbsAddress));
    if (!std::all_of(out.at, out.at + count, is_port_address)) return false;
    out.count = count;
    return true;
}

int pair_ports(const verbs::VerbsAddress* ours, uint32_t count, const PortAddresses& theirs, PortPair* pairs, int most) {
    int made = 0;
    uint32_t ours_used = 0, theirs_used = 0;
    while (made < most) {
        int best = -1;
        PortPair pair{};
        for (uint16_t i = 0; i < count; ++i) {
            if (ours[i].queue == 0 || ours_used >> i & 1) continue;
            for (uint16_t k = 0; k < theirs.count; ++k) {
                if (theirs_used >> k & 1 || (ours[i].lid == 0) != (theirs.at[k].lid == 0)) continue;
                const int common = common_bits(ours[i], theirs.at[k]);
                if (common <= best) continue;
                best = common;
                pair = {i, k};
            }
        }
        if (best < 0) break;
        ours_used |= 1u << pair.ours;
        theirs_used |= 1u << pair.theirs;
        pairs[made++] = pair;
    }
    return made;
}

}  // namespace starling::network
