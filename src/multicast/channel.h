// Multicast as collectives use it: one process of a communicator sends to all the others, reliably, by datagrams to a group of the
// network. The *members* of a channel are the leaders of the communicator's hosts, in an order that all of them have alike; what
// goes on within a host is the node stage's.
//
// The sender decides alone, call by call, whether its message goes to the group: who expects it waits for either, the message
// of the tree or that of the group. So nobody has to agree whether the group can be used, and each may find so earlier than others.
//
// docs/multicast.md has the groups behind it: who shares one, how it comes into being, what goes over the network. All calls under the
// library's lock; what they begin is carried on by the engine's polls.
#pragma once

#include <cstdint>
#include <span>

#include "base/config.h"
#include "link/job.h"
#include "progress/request.h"

namespace starling::multicast {

/// A communicator's share of a group.
class Channel;

/// Opens the channel of a communicator, at its creation, on every member: local, takes microseconds, waits for nobody. `me` is this
/// process's index. `scheme`: Multicast::automatic, or what the communicator's info says; STARLING_MULTICAST=off stands above it.
/// Null: multicast is of no use here (few members, no network that can, encryption). Then it is null for all.
Channel* open(std::span<const link::Process> members, uint32_t me, uint64_t context, Multicast scheme);

/// The communicator is freed: this process will neither send nor receive on it again. What it has sent is delivered all the same. No
/// receive is posted.
void close(Channel& channel);

/// Whether the creation of the communicator may return: with the scheme `basic` not before the group is ready, or found not to
/// work; at once with all others. Wait with progress::wait_until.
bool settled(const Channel& channel);

/// Whether start_send() would take a message of so many bytes now: all members have been reached, and there is room. Constant time. It may
/// become false again at any moment (the group was given up for a more valuable one, its network is down); what has been
/// begun is delivered all the same.
bool may_send(const Channel& channel, uint64_t bytes);

/// Whether start_send() would take the message as soon as what was sent before is acknowledged: the group can be used, and there is no
/// room. That may take long: members need not take what nobody there has asked for.
bool is_full(const Channel& channel, uint64_t bytes);

/// A message to all other members; must not move until it is done: when the memory may be used again, which for short ones is at
/// once. `outcome.error` is MPI_SUCCESS: members that die are no error of the sender's.
struct Send : progress::Request {
    constexpr Send() : Request(progress::RequestKind::send) {}

    // Not for users:
    const std::byte* data = nullptr;
};

/// Begins a message, number `call` of the channel's calls, which may be any but those that this process has used as a
/// sender before. False: not now (see may_send); nothing was begun.
bool start_send(Channel& channel, Send& send, uint64_t call, const void* data, uint64_t bytes);

/// What member `sender` sends to the group as its message `call`; must not move until it is done or withdrawn.
/// `outcome.bytes` says how long the message was; `outcome.error`: MPI_ERR_TRUNCATE if it is longer than the memory,
/// MPI_ERR_PROC_ABORTED if the sender died before all of it had come, with failure_text().
struct Receive : progress::Request {
    constexpr Receive() : Request(progress::RequestKind::receive) {}

    // Not for users:
    Channel* channel = nullptr;
    uint32_t sender = 0;
    uint64_t call = 0;
    std::byte* memory = nullptr;
    uint64_t bytes = 0;
    Receive* next = nullptr;
};

/// Posts a receive; it may be complete on return, since what comes early is kept, and from a sender that has died nothing comes.
void start_receive(Channel& channel, Receive& receive, uint32_t sender, uint64_t call, void* memory, uint64_t bytes);

/// Takes a receive back: the message has come another way. False: it is done already.
bool withdraw(Receive& receive);

/// The same, and what comes of the message yet is thrown away: nobody will ask for it. Nothing if it is done already.
void refuse(Receive& receive);

/// Whether some of the message has come by multicast: then its sender has chosen so, and the rest comes that way.
bool has_begun(const Channel& channel, uint32_t sender, uint64_t call);

/// Whether all that was sent to groups is where it is to be. For MPI_Finalize, which polls until then.
bool all_delivered();

}  // namespace starling::multicast
