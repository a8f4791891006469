#include "multicast/channel.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/counters.h"
#include "base/error.h"
#include "link/transports.h"
#include "multicast/manager.h"
#include "multicast/pool.h"

namespace starling::multicast {

namespace {

constexpr size_t kFewest = 3, kMost = 60'000;  ///< limits of the number of members of a channel
/// Limits for the scheme `auto`: a communicator gets a group after a number of calls that grows with the time of joining, one call per
/// kNsPerCall and at most kMostCalls.
constexpr uint64_t kMostCalls = 64, kNsPerCall = 100'000;
/// Number of calls after which, with the scheme `pool`, a communicator that was assigned no group creates one.
constexpr uint64_t kCallsForPool = 8;

}  // namespace

class Channel {
  public:
    Channel(std::span<const link::Process> its_members, uint64_t its_context, Multicast its_scheme)
        : members(its_members.begin(), its_members.end()), context(its_context), scheme(its_scheme) {}

    MessageLabel label(uint32_t sender, uint64_t call) const {
        return {members[sender].job->address().id, context, call, members[sender].rank};
    }
    void count();
    void request_pool_group();

    const std::vector<link::Process> members;  ///< members in the communicator's order
    const uint64_t context;
    const Multicast scheme;
    Membership* membership = nullptr;
    uint64_t calls = 0;
    std::vector<link::Process> sorted;  ///< members, in the order in which groups number them
    bool leads = false;                 ///< whether this process is the first of `sorted`
    bool pooled = false;                ///< whether `membership` is a pool group
};

/// Counts a call that could use the group. When enough calls have been made, joins the group or requests one from the pool.
void Channel::count() {
    ++calls;
    if (scheme == Multicast::pool && !pooled) request_pool_group();
    note_use(*membership);
    if (membership->group.state() != GroupState::absent) return;
    const uint64_t enough = std::min(cost_of_joining() / kNsPerCall, kMostCalls);
    if (scheme == Multicast::automatic ? calls >= enough : scheme != Multicast::pool || calls > kCallsForPool)
        want(*membership);
}

/// The leader requests a group for the communicator; every member switches to the assigned group when it knows of it.
void Channel::request_pool_group() {
    const bool wants = leads && membership->group.state() == GroupState::absent;
    if (wants && calls <= kCallsForPool && !assigned_by_pool(context)) multicast::request_from_pool(context, sorted);
    Membership* const given = assigned_by_pool(context);
    if (!given) return;
    pooled = true;
    ++given->users;
    release(*std::exchange(membership, given));
}

Channel* open(std::span<const link::Process> members, uint32_t me, uint64_t context, Multicast scheme) {
    const Multicast set = config().multicast;
    if (scheme == Multicast::automatic) scheme = set;
    const bool useful =
        set != Multicast::off && scheme != Multicast::off && members.size() >= kFewest && members.size() <= kMost;
    transport::Transport* const network = link::network();
    if (!useful || !network || !(network->traits.capabilities & transport::kGroups) || config().encryption) return nullptr;
    auto channel = std::make_unique<Channel>(members, context, scheme);
    std::vector<link::Process>& sorted = channel->sorted;
    sorted.assign(members.begin(), members.end());
    std::sort(sorted.begin(), sorted.end(), [](const link::Process& a, const link::Process& b) {
        return std::pair(a.job->address().id, a.rank) < std::pair(b.job->address().id, b.rank);
    });
    const auto at = std::find(sorted.begin(), sorted.end(), members[me]);
    channel->leads = at == sorted.begin();
    channel->membership = use(sorted, static_cast<uint32_t>(at - sorted.begin()));
    if (!channel->membership) return nullptr;
    desk().begin(context);
    if (scheme == Multicast::pool) {
        fill_pool();
        channel->request_pool_group();
    } else if (scheme != Multicast::automatic) {
        want(*channel->membership, scheme == Multicast::basic);
    }
    return channel.release();
}

void close(Channel& channel) {
    desk().forget(channel.context);
    forget_in_pool(channel.context);
    release(*channel.membership);
    delete &channel;
}

bool settled(const Channel& channel) {
    const GroupState state = channel.membership->group.state();
    return channel.scheme != Multicast::basic || state == GroupState::ready || state == GroupState::absent;
}

bool may_send(const Channel& channel, uint64_t bytes) { return channel.membership->group.may_send(bytes); }

bool is_ready(const Channel& channel) { return channel.membership->group.state() == GroupState::ready; }

void hasten(Channel& channel) {
    if (channel.membership->group.request_acks(now_ns())) check_again(*channel.membership);
}

bool is_full(const Channel& channel, uint64_t bytes) { return is_ready(channel) && !may_send(channel, bytes); }

bool start_send(Channel& channel, MulticastSend& send, uint64_t call, const void* data, uint64_t bytes) {
    channel.count();
    MulticastGroup& group = channel.membership->group;
    if (!group.may_send(bytes)) return false;
    group.start(send, channel.context, call, data, bytes, now_ns());
    ++counters.group_messages;
    counters.group_bytes += bytes;
    check_again(*channel.membership);
    return true;
}

void start_receive(Channel& channel, MulticastReceive& receive, uint32_t sender, uint64_t call, void* memory, uint64_t bytes) {
    channel.count();
    receive.channel = &channel;
    receive.sender = sender;
    receive.call = call;
    receive.memory = static_cast<std::byte*>(memory);
    receive.bytes = bytes;
    desk().post(receive, channel.label(sender, call));
    const link::Process& from = channel.members[sender];
    if (!receive.done && link::has_failed(from)) desk().fail(from.job->address().id, from.rank);
}

bool withdraw(MulticastReceive& receive) {
    return desk().withdraw(receive, receive.channel->label(receive.sender, receive.call));
}

void refuse(MulticastReceive& receive) { desk().refuse(receive, receive.channel->label(receive.sender, receive.call)); }

bool has_begun(const Channel& channel, uint32_t sender, uint64_t call) { return desk().has_begun(channel.label(sender, call)); }

}  // namespace starling::multicast
