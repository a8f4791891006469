// Multicast for collectives: one process of a communicator sends to all the others, reliably, by datagrams to a group of the network. The
// *members* of a channel are the leaders of the communicator's hosts, in an order that all of them share. Within a host the shared-memory
// stage distributes the data.
//
// The sender decides alone, call by call, whether its message uses the group. So a receiver waits for both the multicast and a message down
// a tree of members. No agreement on the group's state is needed, and members may learn of it at different times.
//
// docs/multicast.md describes the groups: which communicators share one, how a group is created, and its packets. Make all calls under the
// library's lock; the engine's polls continue the operations that they begin.
#pragma once

#include <cstdint>
#include <span>

#include "base/config.h"
#include "link/job.h"
#include "progress/request.h"

namespace starling::multicast {

/// A communicator's use of a multicast group.
class Channel;

/// Opens the channel of a communicator at its creation, on every member. Local, takes microseconds, does not block. `me` is this process's
/// index. `scheme`: Multicast::automatic, or the scheme in the communicator's info; STARLING_MULTICAST=off has precedence. Returns null,
/// then on all members, if multicast is not useful: few members, no network with multicast, encryption.
Channel* open(std::span<const link::Process> members, uint32_t me, uint64_t context, Multicast scheme);

/// Closes the channel when the communicator is freed: this process will neither send nor receive on it again. Messages already sent are
/// still delivered. No receive may be posted.
void close(Channel& channel);

/// Returns whether the communicator's creation may return. With the scheme `basic` it waits until the group is ready or has failed; with
/// all others it does not wait. Wait with progress::wait_until.
bool settled(const Channel& channel);

/// Returns, in constant time, whether start_send() would take a message of this size now: the group is ready, and its send window and
/// buffers have space. The result may change at any moment, because a more valuable group evicts this one or its network is down. Messages
/// already begun are still delivered.
bool may_send(const Channel& channel, uint64_t bytes);

/// Returns whether the group is ready, with or without space for a message.
bool is_ready(const Channel& channel);

/// Requests acknowledgements of this process's earlier messages now: a long message is taken only once all of them are acknowledged.
void hasten(Channel& channel);

/// Returns whether start_send() would take the message once earlier messages are acknowledged: the group is ready, but has no space for it.
/// That may take long, because a member need not accept messages for which it has not posted a receive.
bool is_full(const Channel& channel, uint64_t bytes);

/// A message to all other members. It must not move until it is done, that is, until its memory may be reused; for short messages that is
/// at once. `outcome.error` is MPI_SUCCESS: the death of a member is not an error of the sender.
struct MulticastSend : progress::Request {
    constexpr MulticastSend() : Request(progress::RequestKind::send) {}

    // Members for use inside src/multicast only:
    const std::byte* data = nullptr;
};

/// Begins a message, number `call` of the channel's calls. Numbers may be any that this process has not used as a sender before. Returns
/// false, and begins nothing, if the message cannot be sent now (see may_send).
bool start_send(Channel& channel, MulticastSend& send, uint64_t call, const void* data, uint64_t bytes);

/// The receive of member `sender`'s message `call`. It must not move until it is done or withdrawn. `outcome.bytes` is the length of the
/// message. `outcome.error` is MPI_ERR_TRUNCATE if the message is longer than the memory, or MPI_ERR_PROC_ABORTED if the sender died before
/// all of it had arrived, with failure_text().
struct MulticastReceive : progress::Request {
    constexpr MulticastReceive() : Request(progress::RequestKind::receive) {}

    // Members for use inside src/multicast only:
    Channel* channel = nullptr;
    uint32_t sender = 0;
    uint64_t call = 0;
    std::byte* memory = nullptr;
    uint64_t bytes = 0;
    MulticastReceive* next = nullptr;
};

/// Posts a receive. It may be complete on return: early messages are stored, and a receive from a sender that has failed fails at once. If
/// the sender has ended in order, the receive stays until its message comes down the tree.
void start_receive(Channel& channel, MulticastReceive& receive, uint32_t sender, uint64_t call, void* memory, uint64_t bytes);

/// Withdraws a receive whose message arrived down the tree. Returns false if the receive is done already.
bool withdraw(MulticastReceive& receive);

/// Withdraws a receive and discards the rest of its message, which no receive will match. Does nothing if the receive is done already.
void refuse(MulticastReceive& receive);

/// Returns whether a part of the message has arrived by multicast: then its sender has chosen multicast, and the rest arrives that way,
/// too.
bool has_begun(const Channel& channel, uint32_t sender, uint64_t call);

/// Returns whether all messages to groups have been delivered. MPI_Finalize polls until then.
bool all_delivered();

}  // namespace starling::multicast
