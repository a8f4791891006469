// The plan manager's effect on connections: three processes, one of which may have only a single connection, and partners that change with
// each phase.
#include "plan/manager.h"

#include <gtest/gtest.h>

#include <vector>

#include "message/point_to_point.h"
#include "message_traffic.h"
#include "profile/phase.h"

namespace starling::plan {
namespace {

using namespace message::test;
using link::ConnectionState;

/// Exchanges `count` messages of `bytes` bytes in both directions between processes 0 and `with`. The third process has none.
void exchange(Node& node, int with, int count, uint64_t bytes) {
    if (node.rank != 0 && node.rank != with) return;
    const int other = node.rank == 0 ? with : 0;
    for (int i = 0; i < count; ++i) {
        Receiving receiving(bytes, false);
        message::start_receive(receiving.request, *node.channel, receiving.buffer.memory.data(), static_cast<int64_t>(bytes),
                               bytes_type(), other, 1);
        Sending sending(Plan{node.rank, other, i, bytes, 1, false, false, false});
        sending.start(node);
        progress::wait(sending.request);
        progress::wait(receiving.request);
        receiving.expect({other, node.rank, i, bytes, 1, false, false, false});
    }
}

/// Runs phase `with` in processes 0 to 2: they begin it together and exchange messages in it. `then` runs before the first message.
class Phases {
  public:
    explicit Phases(Node& node) : node_(node) { start(); }
    template <class Then>
    void run(int with, int count, uint64_t bytes, Then&& then) {
        profile::begin_phase(std::to_string(with), profile::PhaseMark::program);
        then();
        meet();
        exchange(node_, with, count, bytes);
        meet();
    }
    void run(int with, int count, uint64_t bytes) {
        run(with, count, bytes, [] {});
    }
    bool is(int other, ConnectionState state) { return node_.peer(other).state == state; }
    void expect_soon(int other, ConnectionState state) {
        node_.wait_for([&] { return is(other, state); });
    }

  private:
    void meet() {
        node_.board.arrived[0].fetch_add(1);
        meetings_ += node_.size;
        node_.wait_for([&] { return node_.board.arrived[0].load() >= meetings_; });
    }
    Node& node_;
    int meetings_ = 0;
};

/// Returns settings by which only the plan opens connections: at most one ring and one other connection per process.
Settings settings_with(std::initializer_list<Setting> more) {
    Settings settings{{"STARLING_PLAN", "learn"},
                      {"STARLING_MAX_DIRECT", "1"},
                      {"STARLING_MAX_CONNECTIONS", "1"},
                      {"STARLING_DIRECT_THRESHOLD", "1000000"},
                      {"STARLING_CONNECT_MESSAGES", "1000000"},
                      {"STARLING_CONNECT_BYTES", "1099511627776"},
                      {"STARLING_REPLACE_MESSAGES", "64"}};
    settings.insert(settings.end(), more);
    return settings;
}

void with_three(const std::vector<int>& hosts, std::initializer_list<Setting> more, const std::function<void(Node&)>& body) {
    Team team(Placement{{0, 0, 0}, hosts});
    team.start(settings_with(more), body);
    team.expect_success();
}

void change_partners(Node& node, uint64_t bytes) {
    Phases phases(node);
    for (int cycle = 0; cycle < 4; ++cycle)
        for (const int with : {1, 2})
            phases.run(with, 100, bytes, [&] {
                // The peers are connected before the first message, because the last occurrence had as many messages.
                if (cycle > 0 && node.rank == 0) phases.expect_soon(with, ConnectionState::connected);
                if (cycle > 0 && node.rank == with) phases.expect_soon(0, ConnectionState::connected);
            });
}

TEST(PlanManager, AFormerPartnerHasADirectRingBeforeTheFirstMessage) {
    with_three({0, 0, 0}, {}, [](Node& node) { change_partners(node, 100); });
}

TEST(PlanManager, NoTcpConnectionIsOpenedForTrafficThatFitsIntoDatagrams) {
    with_three({0, 1, 2}, {}, [](Node& node) {
        Phases phases(node);
        for (int cycle = 0; cycle < 4; ++cycle)
            for (const int with : {1, 2}) phases.run(with, 100, 1000);
        EXPECT_EQ(counters.opened, 0u);
    });
}

TEST(PlanManager, AConnectionMustEarnItsReplacementCost) {
    with_three({0, 0, 0}, {{"STARLING_REPLACE_MESSAGES", "201"}}, [](Node& node) {
        Phases phases(node);
        // 200 messages in both directions cost less than replacing a connection, so the first partner keeps the only one.
        for (int cycle = 0; cycle < 4; ++cycle)
            for (const int with : {1, 2}) phases.run(with, 100, 100);
        if (node.rank == 0) {
            EXPECT_EQ(counters.opened, 1u);
            EXPECT_EQ(counters.closed, 0u);
        }
    });
}

TEST(PlanManager, FewMessagesOpenNoConnection) {
    with_three({0, 0, 0}, {}, [](Node& node) {
        Phases phases(node);
        for (int cycle = 0; cycle < 4; ++cycle)
            for (const int with : {1, 2}) phases.run(with, 1, 100);
        EXPECT_EQ(counters.opened, 0u);
    });
}

}  // namespace
}  // namespace starling::plan
