// The port addresses that a peer sends: impossible ones are rejected, and the pairing of ports stays within its bounds.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>
#include <string>

#include "transport/network/datagram/gid_pairs.h"

using namespace starling;
using namespace starling::network;

namespace {

std::string address(char network, char lid, char queue) {
    verbs::VerbsAddress made;
    made.gid[0] = static_cast<uint8_t>(network);
    made.queue = static_cast<uint32_t>(queue);
    made.lid = static_cast<uint16_t>(lid);
    made.mtu_log = 12;
    return {reinterpret_cast<const char*>(&made), sizeof made};
}

}  // namespace

/// Returns well-formed inputs, which the replay driver mutates.
const std::string* fuzz_seeds(size_t& count) {
    static const std::string seeds[] = {
        std::string(1, '\1') + address(1, 0, 5) + address(1, 0, 6),
        std::string(1, '\2') + address(1, 3, 5) + address(2, 0, 6) + address(2, 0, 7) + address(1, 4, 8),
        std::string(1, '\0') + address(9, 0, 9),
    };
    count = std::size(seeds);
    return seeds;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    // The first byte is the number of our own addresses. Copy the rest to memory of exactly its size, for the sanitizer.
    const uint32_t count = size > 0 ? data[0] % (verbs::Ports::kMost + 1) : 0;
    verbs::VerbsAddress ours[verbs::Ports::kMost];
    size_t at = size > 0;
    for (uint32_t i = 0; i < count && size - at >= sizeof ours[i]; ++i, at += sizeof ours[i])
        std::memcpy(&ours[i], data + at, sizeof ours[i]);
    const size_t rest = size - at;
    std::unique_ptr<std::byte[]> told(new std::byte[rest]);
    if (rest > 0) std::memcpy(told.get(), data + at, rest);
    PortAddresses theirs;
    if (!PortAddresses::decode(told.get(), static_cast<uint32_t>(rest), theirs)) return 0;
    if (theirs.count > PortAddresses::kMost || theirs.count * sizeof(verbs::VerbsAddress) != rest) std::abort();
    PortPair pairs[verbs::Ports::kMost];
    for (int most = 0; most <= verbs::Ports::kMost; ++most) {
        const int made = pair_ports(ours, count, theirs, pairs, most);
        if (made > most) std::abort();
        uint32_t ours_seen = 0, theirs_seen = 0;
        for (int i = 0; i < made; ++i) {
            if (pairs[i].ours >= count || pairs[i].theirs >= theirs.count || ours[pairs[i].ours].queue == 0) std::abort();
            if (ours_seen >> pairs[i].ours & 1 || theirs_seen >> pairs[i].theirs & 1) std::abort();
            ours_seen |= 1u << pairs[i].ours;
            theirs_seen |= 1u << pairs[i].theirs;
        }
    }
    return 0;
}
