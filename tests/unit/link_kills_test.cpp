// A process is killed in every state of a connection, on either side of the packets that open or close it. The survivor's connection slot
// becomes free, and another peer can use it.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/counters.h"
#include "link/peer.h"
#include "message/point_to_point.h"
#include "message_traffic.h"

namespace starling::message::test {
namespace {

using link::ConnectionState;

constexpr int kReady = 1;
constexpr int kSurvivor = 0, kThird = 1, kVictim = 2;

/// Indexes into Board::arrived, by which the processes notify each other of events.
constexpr int kVictimIsDone = 3, kVictimIsDead = 4, kEnd = 5, kRequestHasCome = 6;

void poll_until(Node& node, int other, ConnectionState state) {
    node.wait_for([&] { return node.peer(other).state == state; });
}

void connect(Node& node, int other, bool asks) {
    if (asks) link::request_connection(node.peer(other));
    poll_until(node, other, ConnectionState::connected);
}

/// A connection state in which the victim is killed. When victim() has returned, the victim never polls again.
struct Moment {
    const char* name;
    void (*victim)(Node& node);
    void (*survivor)(Node& node);
    std::vector<ConnectionState> states;  ///< possible states of the survivor at the kill
};

/// Waits until the victim's function has returned.
void wait_for_victim(Node& node) {
    while (node.board.arrived[kVictimIsDone].load() == 0) usleep(200);
}

void connected(Node& node) { connect(node, kSurvivor, false); }

/// Polls until the request has arrived: a datagram may need more than one poll to leave.
void ask_until_it_has_come(Node& node) {
    link::request_connection(node.peer(kSurvivor));
    while (node.board.arrived[kRequestHasCome].load() == 0) progress::test();
}

void let_it_come(Node& node) {
    node.wait_for([&] { return node.peer(kVictim).state != ConnectionState::closed; });
    node.board.arrived[kRequestHasCome].store(1);
}

// A granted TCP connection becomes connected only when it carries data; a granted ring is connected at once.
const Moment kMoments[] = {
    {"asked", [](Node&) {}, [](Node& node) { link::request_connection(node.peer(kVictim)); }, {ConnectionState::connecting}},
    {"granted", ask_until_it_has_come, let_it_come, {ConnectionState::connecting, ConnectionState::connected}},
    {"connected", connected, [](Node& node) { connect(node, kVictim, true); }, {ConnectionState::connected}},
    {"closing",
     connected,
     [](Node& node) {
         connect(node, kVictim, true);
         wait_for_victim(node);
         link::request_close(node.peer(kVictim));
     },
     {ConnectionState::quiescing}},
    // Both processes send an open packet at the same time. Each takes the other's packet as the reply to its own.
    {"crossing",
     [](Node& node) { link::request_connection(node.peer(kSurvivor)), progress::test(); },
     [](Node& node) {
         wait_for_victim(node);
         link::request_connection(node.peer(kVictim));
     },
     {ConnectionState::connecting}},
};

void play_victim(Node& node, const Moment& moment) {
    moment.victim(node);
    node.board.arrived[kVictimIsDone].store(1);
    for (;;) pause();
}

void play_third(Node& node) {
    node.wait_for([&] { return node.board.arrived[kVictimIsDead].load() != 0; });
    connect(node, kSurvivor, false);
    node.meet(kEnd, 2);
}

void play_survivor(Node& node, const Moment& moment) {
    moment.survivor(node);
    wait_for_victim(node);
    const ConnectionState state = node.peer(kVictim).state;
    EXPECT_NE(std::find(moment.states.begin(), moment.states.end(), state), moment.states.end())
        << moment.name << ": " << link::name(state);
    node.board.stage.store(kReady);
    node.wait_for([&] { return node.peer(kVictim).dead; });
    EXPECT_EQ(node.peer(kVictim).state, ConnectionState::closed) << moment.name;
    EXPECT_FALSE(node.peer(kVictim).open_deferred) << moment.name;
    EXPECT_EQ(counters.connections, 0u) << moment.name;
    // There is one slot, and its former user is dead.
    node.board.arrived[kVictimIsDead].store(1);
    connect(node, kThird, true);
    EXPECT_EQ(counters.connections, 1u) << moment.name;  // only the connection with the third process is left
    node.meet(kEnd, 2);
    Sending sending(Plan{0, kVictim, 0, 8, 1, false, false, false});
    sending.start(node);
    progress::wait(sending.request);
    EXPECT_EQ(sending.request.outcome.error, MPI_ERR_PROC_ABORTED) << moment.name;
}

void kill_at(const Moment& moment, const std::vector<int>& hosts) {
    SCOPED_TRACE(moment.name);
    Team team(Placement{{0, 0, 1}, hosts});
    team.start({{"STARLING_MAX_DIRECT", "1"}, {"STARLING_MAX_CONNECTIONS", "1"}}, [&](Node& node) {
        if (node.rank == kVictim) return play_victim(node, moment);
        if (node.rank == kThird) return play_third(node);
        play_survivor(node, moment);
    });
    for (int i = 0; i < 20000 && team.board().stage.load() != kReady; ++i) usleep(1000);
    ASSERT_EQ(team.board().stage.load(), kReady);
    team.kill_process(kVictim);
    team.expect_success(kSurvivor);
    team.expect_success(kThird);
}

TEST(Kills, PeerKilledInEveryStateOfADirectRing) {
    for (const Moment& moment : kMoments) kill_at(moment, {0, 0, 0});
}

TEST(Kills, PeerKilledInEveryStateOfATcpConnection) {
    for (const Moment& moment : kMoments) kill_at(moment, {0, 1, 2});
}

}  // namespace
}  // namespace starling::message::test
