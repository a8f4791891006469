// The port addresses that processes exchange, and the pairing of ports.
#include "transport/network/datagram/gid_pairs.h"

#include <gtest/gtest.h>

#include <cstring>
#include <utility>
#include <vector>

namespace starling::network {
namespace {

verbs::VerbsAddress roce(uint8_t subnet, uint8_t host, uint32_t queue = 5) {
    verbs::VerbsAddress made;
    made.gid[10] = made.gid[11] = 0xff;
    made.gid[12] = 10;
    made.gid[13] = subnet;
    made.gid[15] = host;
    made.queue = queue;
    made.mtu_log = 10;
    return made;
}

verbs::VerbsAddress infiniband(uint8_t subnet, uint16_t lid) {
    verbs::VerbsAddress made;
    made.gid[0] = 0xfe;
    made.gid[7] = subnet;
    made.gid[15] = static_cast<uint8_t>(lid);
    made.queue = 7;
    made.mtu_log = 12;
    made.lid = lid;
    return made;
}

using Pairs = std::vector<std::pair<int, int>>;

Pairs pair(const std::vector<verbs::VerbsAddress>& ours, const std::vector<verbs::VerbsAddress>& theirs, int most = 4) {
    PortAddresses told;
    for (const verbs::VerbsAddress& one : theirs) told.at[told.count++] = one;
    PortPair pairs[4];
    const int count = pair_ports(ours.data(), static_cast<uint32_t>(ours.size()), told, pairs, most);
    Pairs made;
    for (int i = 0; i < count; ++i) made.emplace_back(pairs[i].ours, pairs[i].theirs);
    return made;
}

TEST(PortAddresses, PortsOfOneNetworkArePaired) {
    EXPECT_EQ(pair({roce(1, 1), roce(2, 1)}, {roce(2, 2), roce(1, 2)}), (Pairs{{0, 1}, {1, 0}}));
    EXPECT_EQ(pair({infiniband(1, 3), infiniband(2, 4)}, {infiniband(2, 8), infiniband(1, 9)}), (Pairs{{0, 1}, {1, 0}}));
}

TEST(PortAddresses, InfiniBandAndRoceAreNotMixed) {
    EXPECT_EQ(pair({roce(1, 1)}, {infiniband(1, 3)}), Pairs());
    EXPECT_EQ(pair({infiniband(1, 1), roce(1, 1)}, {roce(9, 2), infiniband(9, 3)}), (Pairs{{1, 0}, {0, 1}}));
}

TEST(PortAddresses, EachPortHasOnePartnerAndPortsWithoutAQueueNone) {
    EXPECT_EQ(pair({roce(1, 1), roce(1, 2), roce(1, 3)}, {roce(1, 9)}).size(), 1u);
    EXPECT_EQ(pair({verbs::VerbsAddress(), roce(1, 2)}, {roce(1, 9), roce(1, 8)}).size(), 1u);
    EXPECT_EQ(pair({roce(1, 1), roce(2, 1), roce(3, 1)}, {roce(1, 2), roce(2, 2), roce(3, 2)}, 2).size(), 2u);
    EXPECT_EQ(pair({}, {roce(1, 2)}), Pairs());
    EXPECT_EQ(pair({roce(1, 2)}, {}), Pairs());
}

bool decodes(const std::vector<verbs::VerbsAddress>& told, size_t cut = 0) {
    PortAddresses out;
    std::vector<std::byte> bytes(told.size() * sizeof(verbs::VerbsAddress));
    if (!bytes.empty()) std::memcpy(bytes.data(), told.data(), bytes.size());
    if (!PortAddresses::decode(bytes.data(), static_cast<uint32_t>(bytes.size() - cut), out)) {
        EXPECT_EQ(out.count, 0u);
        return false;
    }
    EXPECT_EQ(out.count, told.size());
    for (size_t i = 0; i < told.size(); ++i) EXPECT_TRUE(out.at[i] == told[i]);
    return true;
}

TEST(PortAddresses, ImpossibleAddressesAreRefused) {
    EXPECT_TRUE(decodes({}));
    EXPECT_TRUE(decodes({roce(1, 1), infiniband(1, 2), roce(2, 1), roce(3, 1)}));
    EXPECT_FALSE(decodes({roce(1, 1), roce(1, 1), roce(1, 1), roce(1, 1), roce(1, 1)}));
    EXPECT_FALSE(decodes({roce(1, 1)}, 1));
    for (const uint32_t queue : {0u, 1u, 1u << 24, ~0u}) EXPECT_FALSE(decodes({roce(1, 1), roce(1, 1, queue)})) << queue;
    verbs::VerbsAddress nowhere;
    nowhere.queue = 9;
    nowhere.mtu_log = 10;
    EXPECT_FALSE(decodes({nowhere}));
    for (const uint8_t log : {0, 7, 17, 255}) {
        verbs::VerbsAddress odd = roce(1, 1);
        odd.mtu_log = log;
        EXPECT_FALSE(decodes({odd})) << int{log};
    }
}

}  // namespace
}  // namespace starling::network
