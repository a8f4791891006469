#include "collective/multicast_channel.h"

#include "base/config.h"
#include "base/hash.h"

namespace starling::collective {

namespace {

/// Number of collective calls after which a communicator gets a multicast group, so that short-lived communicators with few calls cost
/// nothing.
constexpr int kWorthAfter = 4;

Multicast scheme_of(const comm::Comm& comm) {
    const Multicast all = config().multicast;
    return all == Multicast::off || comm.hints.multicast == Multicast::automatic ? all : comm.hints.multicast;
}

/// Returns an id for the multicast channel, made from the context id and the first member. A context id alone is unique only within a
/// process: disjoint communicators of one split share it, and so do the sides of an inter-communicator.
uint64_t context_of(const comm::Comm& comm, const link::Process& first) {
    return hash_on(hash_on(hash_on(kEmptyHash, comm.context()), first.job->address().id), first.rank);
}

}  // namespace

bool ChannelCast::may_exist(const comm::Comm& comm) {
    // With encryption there is no multicast, because a group's key does not authenticate individual members.
    return !config().encryption && scheme_of(comm) != Multicast::off;
}

int ChannelCast::first_call(const comm::Comm& comm, bool of_one_job) {
    if (!may_exist(comm)) return kNever;
    switch (scheme_of(comm)) {
        case Multicast::automatic:
            // The jobs of a communicator may have different schemes. Without a decision of their user they send messages, which all expect.
            return of_one_job ? kWorthAfter : kNever;
        default:
            return 0;
    }
}

bool ChannelCast::pays_for_short(const comm::Comm& comm, size_t hosts) {
    return hosts >= kFewest && scheme_of(comm) != Multicast::automatic;
}

ChannelCast::ChannelCast(const comm::Comm& comm, const std::vector<int>& leaders, int mine)
    : measures_(scheme_of(comm) == Multicast::automatic) {
    if (mine < 0) return;
    std::vector<link::Process> members;
    members.reserve(leaders.size());
    for (const int leader : leaders) members.push_back(comm.collective.roster().at(leader));
    channel_ = multicast::open(members, static_cast<uint32_t>(mine), context_of(comm, members.front()), scheme_of(comm));
}

ChannelCast::~ChannelCast() {
    if (channel_) multicast::close(*channel_);
}

bool ChannelCast::start_send(multicast::MulticastSend& send, uint64_t call, const void* data, uint64_t bytes) {
    return channel_ && multicast::start_send(*channel_, send, call, data, bytes);
}

void ChannelCast::start_receive(multicast::MulticastReceive& receive, int sender, uint64_t call, void* memory, uint64_t bytes) {
    if (channel_) multicast::start_receive(*channel_, receive, static_cast<uint32_t>(sender), call, memory, bytes);
}

bool ChannelCast::withdraw(multicast::MulticastReceive& receive) { return !channel_ || multicast::withdraw(receive); }

void ChannelCast::refuse(multicast::MulticastReceive& receive) {
    if (channel_) multicast::refuse(receive);
}

}  // namespace starling::collective
