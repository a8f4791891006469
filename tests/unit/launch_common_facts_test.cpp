#include <gtest/gtest.h>

#include <arpa/inet.h>

#include <random>
#include <vector>

#include "base/wire.h"
#include "launch/common/host_facts.h"
#include "launch/common/hosts.h"

namespace starling::launch {
namespace {

uint32_t address(const char* text) { return inet_addr(text); }
const uint32_t kMask = inet_addr("255.255.0.0");

std::vector<uint32_t> chosen(const std::vector<OwnAddress>& own, const std::vector<uint32_t>& others) {
    job::HostEntry entry;
    choose_addresses(own, others, entry);
    return {entry.ipv4, entry.ipv4 + entry.addresses};
}

TEST(HostFacts, AddressesOnNetworksOfPeersComeFirst) {
    std::vector<OwnAddress> own;
    for (const char* bridge : {"172.17.0.1", "172.18.0.1", "172.19.0.1", "172.20.0.1", "172.21.0.1", "172.22.0.1"})
        own.push_back({address(bridge), kMask, bridge[5] == '7'});
    own.push_back({address("10.1.0.5"), kMask, true});
    own.push_back({address("10.2.0.5"), kMask, true});
    const auto alone = chosen(own, {});
    ASSERT_EQ(alone.size(), 6u);
    EXPECT_EQ(alone[0], address("172.17.0.1")) << "all interfaces with a carrier are equal, so their order stays";
    EXPECT_EQ(alone[1], address("10.1.0.5"));
    EXPECT_EQ(alone[2], address("10.2.0.5"));
    const auto met = chosen(own, {address("10.2.0.9"), address("172.17.0.1"), address("172.18.0.9")});
    EXPECT_EQ(met[0], address("10.2.0.5")) << "the other host's bridge is not a path to it";
    EXPECT_EQ(chosen({}, {}), std::vector<uint32_t>{address("127.0.0.1")});
}

TEST(HostFacts, HaveTheWireVersionWhereOlderReleasesDoNotReadIt) {
    HostFacts facts = own_facts(), read;
    EXPECT_EQ(facts.version, wire_version());
    for (const uint32_t version : {kFirstWire, 0x10001u, 0x10002u}) {
        facts.version = version;
        ASSERT_TRUE(decode(encode(facts), read));
        EXPECT_EQ(read.version, version);
        EXPECT_STREQ(read.entry.name, facts.entry.name);
    }
    const std::string bytes = encode(facts);
    Reader reader(bytes);  // as wire version 1.0 reads it
    reader.number<job::HostId>();
    const std::string name(reader.string());
    EXPECT_STREQ(name.c_str(), facts.entry.name);
    EXPECT_EQ(reader.number<uint32_t>(), facts.cores);
    EXPECT_EQ(reader.number<uint32_t>(), facts.entry.addresses);
}

TEST(HostNames, LookupsAgreeWithALinearSearch) {
    std::mt19937 random(11);
    const char* const names[] = {"a",        "A.x",   "a.y", "b",         "B.X",       "b.y", "10.0.0.1",
                                 "10.0.0.2", "c.x.z", "c",   "localhost", "127.0.0.1", "d"};
    for (int round = 0; round < 2000; ++round) {
        HostNames known;
        std::vector<std::string> list;
        for (size_t i = random() % 5; i > 0; --i) {
            list.emplace_back(names[random() % std::size(names)]);
            known.add(list.back(), static_cast<uint32_t>(list.size() - 1));
        }
        for (const char* name : names) {
            const uint32_t found = known.find(name);
            bool any = false;
            for (const std::string& other : list) any = any || same_host(name, other);
            ASSERT_EQ(found != HostNames::kNone, any) << name;
            ASSERT_TRUE(!any || same_host(name, list[found])) << name;
        }
    }
}

}  // namespace
}  // namespace starling::launch
