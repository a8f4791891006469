// The life of a group at one member, as a table. Pure: docs/multicast.md explains it.
#pragma once

#include <cstdint>

namespace starling::multicast {

enum class State : uint8_t {
    absent,    ///< no member of the network's group
    creating,  ///< is to join
    testing,   ///< joined; whether all are reached is being found out
    ready,     ///< all are: messages may go to the group
    leaving,   ///< nothing new goes to the group; what was sent is still being acknowledged
};
inline constexpr int kStates = 5;

enum class Event : uint8_t {
    want,        ///< a communicator wants to use it
    joined,      ///< the network has taken us in
    refused,     ///< it has not: no route, its limit
    all_answer,  ///< the leader's test has succeeded, or its word of that has come
    silence,     ///< for too long not all have answered
    unready,     ///< somebody has left, or the leader says so
    give_up,     ///< this process needs the place for another
    unwanted,    ///< the last communicator is freed
    drained,     ///< all that this process has sent is acknowledged
};
inline constexpr int kEvents = 9;

enum Action : uint8_t {
    kJoin = 1,
    kTest = 2,         ///< the leader pings, all listen for it
    kTellReady = 4,    ///< down the tree
    kTellUnready = 8,  ///< everybody: they go back to point-to-point
    kLeave = 16,       ///< the network's group
};

struct Step {
    State next;
    uint8_t actions;
};

Step step(State state, Event event);
const char* name_of(State state);

}  // namespace starling::multicast
