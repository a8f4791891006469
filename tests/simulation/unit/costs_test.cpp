// Tests the reader of cost files: every figure is required, nothing else is accepted, and each error is a sentence with its place.
#include "../costs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

namespace starling::simulation {
namespace {

using Json = nlohmann::json;

Json example() {
    std::ifstream file(SIMULATION_COSTS "/example.json");
    return Json::parse(file);
}

std::string error_of(const Json& costs) {
    Prices out;
    return parse_costs(costs.dump(), out);
}

TEST(Costs, EveryFileOfTheFolderIsValid) {
    for (const auto& one : std::filesystem::directory_iterator(SIMULATION_COSTS)) {
        if (one.path().extension() != ".json") continue;
        Prices out;
        EXPECT_EQ(read_costs(one.path(), out), "");
        EXPECT_TRUE(out.exact);
    }
}

TEST(Costs, FiguresBecomePrices) {
    Json costs = example();
    costs["udp"]["latency"]["value"] = 4321;
    costs["adapter"]["bytes_per_ns"]["value"] = 12.5;
    Prices out;
    ASSERT_EQ(parse_costs(costs.dump(), out), "");
    EXPECT_EQ(out.of.udp_latency, 4321u);
    EXPECT_EQ(out.of.adapter_bytes_per_ns, 12.5);
    EXPECT_EQ(out.call, out.of.system_system_call);
    EXPECT_EQ(out.with_bytes(100, 0.5, 30), 115u);
}

TEST(Costs, ALackingFigureIsNamed) {
    Json costs = example();
    costs["tcp"].erase("send");
    EXPECT_EQ(error_of(costs), "\"tcp\" has no figure \"send\"");
    costs = example();
    costs.erase("tcp");
    EXPECT_EQ(error_of(costs), "the file has no section \"tcp\"");
    costs = example();
    costs.erase("cache");
    EXPECT_EQ(error_of(costs), "the file has no section \"cache\"; it may be null");
    costs = example();
    costs.erase("about");
    EXPECT_EQ(error_of(costs), "the file has no \"about\"");
}

TEST(Costs, AnUnknownNameIsAnError) {
    Json costs = example();
    costs["tcp"]["sent"] = costs["tcp"]["send"];
    EXPECT_EQ(error_of(costs), "\"tcp\" has a figure \"sent\", which is unknown");
    costs = example();
    costs["quic"] = costs["tcp"];
    EXPECT_EQ(error_of(costs), "the file has a section \"quic\", which is unknown");
    costs = example();
    costs["udp"]["send"]["unit"] = "ns";
    EXPECT_EQ(error_of(costs), "\"udp.send\" has \"unit\" besides \"value\" and \"source\"");
}

TEST(Costs, AFigureHasAValueAndASource) {
    Json costs = example();
    costs["udp"]["send"].erase("source");
    EXPECT_EQ(error_of(costs), "\"udp.send\" has no \"source\", a text that says where the figure comes from");
    costs = example();
    costs["udp"]["send"].erase("value");
    EXPECT_EQ(error_of(costs), "\"udp.send\" has no \"value\"");
    costs = example();
    costs["udp"]["send"]["value"] = "3 us";
    EXPECT_EQ(error_of(costs), "\"udp.send\" has a value that is not a number");
    costs["udp"]["send"]["value"] = 0.5;
    EXPECT_EQ(error_of(costs), "\"udp.send\" is 0.5, but the least value is 1 and the greatest 1e15");
    costs["udp"]["send"]["value"] = 2.5;
    EXPECT_EQ(error_of(costs), "\"udp.send\" is not a whole number");
    costs["udp"]["send"] = 3000;
    EXPECT_EQ(error_of(costs), "\"udp.send\" is not an object with \"value\" and \"source\"");
}

TEST(Costs, HostsHaveDevicesOrNone) {
    Json costs = example();
    for (const char* each : {"ud", "rc", "ring", "rdma"}) costs[each] = nullptr;
    Prices out;
    EXPECT_EQ(parse_costs(costs.dump(), out), "");
    EXPECT_FALSE(out.has_devices);
    EXPECT_EQ(least_latency(out, false), std::min(out.of.udp_latency, out.of.tcp_latency));
    EXPECT_EQ(least_latency(out, true), out.of.shared_memory_line);
    costs = example();
    costs["ring"] = nullptr;
    EXPECT_EQ(
        error_of(costs),
        "the file has some of the sections \"ud\", \"rc\", \"ring\" and \"rdma\", but not all: hosts have devices or none");
    costs = example();
    costs["udp"] = nullptr;
    EXPECT_EQ(error_of(costs), "\"udp\" is not an object of figures");
}

TEST(Costs, AFileThatIsNotJsonIsAnError) {
    Prices out;
    EXPECT_NE(parse_costs("{", out).find("the file is not JSON: "), std::string::npos);
    EXPECT_EQ(parse_costs("[]", out), "the file is not a JSON object");
    EXPECT_EQ(read_costs("/nowhere.json", out), "/nowhere.json: No such file or directory");
}

}  // namespace
}  // namespace starling::simulation
