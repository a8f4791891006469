// The state machine of a group at one member, as a table without side effects. docs/multicast.md explains the states and events.
#pragma once

#include <cstdint>

namespace starling::multicast {

enum class GroupState : uint8_t {
    absent,    ///< this process is not a member of the network's group
    creating,  ///< this process is about to join
    testing,   ///< this process has joined; a test determines whether all members are reached
    ready,     ///< all members are reached: messages may use the group
    leaving,   ///< no new messages may be sent; earlier ones are still being acknowledged
};
inline constexpr int kStates = 5;

enum class GroupEvent : uint8_t {
    want,        ///< event: a communicator wants to use the group
    joined,      ///< event: the network has accepted this process as a member of its group
    refused,     ///< event: the network has not accepted this process, because there is no route or its limit is reached
    all_answer,  ///< event: the leader's test has succeeded, here or as reported by the leader
    silence,     ///< event: the test has timed out, because not all members answered
    unready,     ///< event: a member has left the group or does not join it
    abandoned,  ///< event: this process drops the group, because another group needs its place or its multicast does not arrive
    unwanted,   ///< event: the last communicator of the group is freed, or the other members continued without this process
    drained,    ///< event: everything that this process sent has been acknowledged
};
inline constexpr int kEvents = 9;

enum GroupAction : uint8_t {
    kJoin = 1,
    kTest = 2,         ///< action: begin the test, in which the leader sends pings and the others wait for them
    kTellReady = 4,    ///< action: notify the members, down the tree, that the group is ready
    kTellUnready = 8,  ///< action: notify the members, which return to point-to-point messages
    kLeave = 16,       ///< action: leave the network's group
};

struct GroupStep {
    GroupState next;
    uint8_t actions;
};

GroupStep step(GroupState state, GroupEvent event);
const char* name_of(GroupState state);

}  // namespace starling::multicast
