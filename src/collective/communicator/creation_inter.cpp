// Creates inter-communicators from two groups, and communicators from groups alone.
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "base/state.h"
#include "collective/agreement.h"
#include "collective/channel_exchange.h"
#include "collective/collective.h"
#include "collective/communicator/creation.h"
#include "collective/core/buffers.h"
#include "message/receive.h"
#include "message/revocation.h"

namespace starling::collective {

using comm::Comm;

namespace {

// The message that the leaders exchange, and that each then broadcasts to its own group: an envelope of fixed size. The encoded group
// follows in a second message.
struct LeaderEnvelope {
    uint64_t context = 0;
    uint64_t job = 0;  ///< job of the leader that sends the envelope; `rank` is the leader's rank in it
    uint32_t rank = 0;
    uint32_t bytes = 0;
    int32_t error = MPI_SUCCESS;
    uint32_t local_first = 0;  ///< in the broadcast: whether this group comes first in the common numbering
};

// Called by leaders: exchanges envelopes and groups over their link, or the error of one group. Afterwards `envelope` and `bytes` hold the
// data to broadcast to the own group.
Task talk_to_leader(LeaderLink link, const comm::Group& local, int error_here, LeaderEnvelope& envelope, std::string& bytes) {
    TaggedExchange exchange(*link.channel, {link.channel->my_rank(), link.remote_leader}, 0, link.tag);
    View v = View::all(exchange);
    const link::Process me = link::self();
    const std::string mine = encode(local);
    const LeaderEnvelope hello{comm::new_context(), me.job->address().id, me.rank, static_cast<uint32_t>(mine.size()),
                               error_here};
    LeaderEnvelope theirs;
    co_await v.send_receive(&hello, sizeof hello, byte_type(), 1, &theirs, sizeof theirs, byte_type(), 1);
    if (v.error) co_return v.error;
    if (theirs.error)
        co_return fail(theirs.error,
                       "a process of the other group passed invalid arguments; that process's error text names them");
    if (error_here) co_return error_here;
    bytes.resize(theirs.bytes);
    co_await v.send_receive(mine.data(), static_cast<int64_t>(mine.size()), byte_type(), 1, bytes.data(),
                            static_cast<int64_t>(bytes.size()), byte_type(), 1);
    if (v.error) co_return v.error;
    // The leader with the lower identity is first, and its context id is used.
    const bool first = hello.job != theirs.job ? hello.job < theirs.job : hello.rank < theirs.rank;
    envelope.context = first ? hello.context : theirs.context;
    envelope.local_first = first;
    envelope.bytes = theirs.bytes;
    co_return MPI_SUCCESS;
}

/// Exchanges the results of both groups between their leaders. Sets `verdict` to the other group's error, or to MPI_ERR_PROC_ABORTED if the
/// exchange failed.
Task swap_verdicts(LeaderLink link, int error, int& verdict) {
    TaggedExchange exchange(*link.channel, {link.channel->my_rank(), link.remote_leader}, 0, link.tag);
    View v = View::all(exchange);
    const int32_t mine = error;
    int32_t theirs = MPI_SUCCESS;
    co_await v.send_receive(&mine, sizeof mine, byte_type(), 1, &theirs, sizeof theirs, byte_type(), 1);
    verdict = v.error == MPI_SUCCESS ? theirs : MPI_ERR_PROC_ABORTED;
    co_return MPI_SUCCESS;
}

/// Receives the other group's data, which the local leader broadcasts to the members of the local group.
Task broadcast_other_group(const View (&steps)[2], int local_leader, int leader_error, LeaderEnvelope& envelope,
                           std::string& bytes) {
    View v = steps[0];
    envelope.error = leader_error;
    if (const int error = co_await bcast(v, &envelope, sizeof envelope, byte_type(), local_leader)) co_return error;
    if (leader_error) co_return leader_error;
    if (envelope.error)
        co_return fail(envelope.error, "rank %d could not exchange the groups with the other group's leader", local_leader);
    if (const int error = comm::check_context(envelope.context)) co_return error;
    bytes.resize(envelope.bytes);
    co_return co_await bcast(steps[1], bytes.data(), envelope.bytes, byte_type(), local_leader);
}

int check_remote(const comm::Group& local, const comm::Group* remote) {
    if (!remote) return fail(MPI_ERR_INTERN, "the group received from the other group's leader is malformed");
    if (remote->size() > 0 && disjoint(local, *remote)) return MPI_SUCCESS;
    return fail(MPI_ERR_COMM, "the two groups of an inter-communicator share a process; they must be disjoint");
}

// Creates an inter-communicator; called by all members of `local`. First the members agree that all arguments are valid: a member with
// invalid ones may not know the leader, so no rooted step comes before. Then the leader exchanges the groups with the other leader and
// broadcasts the result. Finally the members agree on whether each created its part, and the leaders on whether both groups did.
Task exchange_groups(Exchange& local_exchange, comm::Group& local, int local_leader, LeaderLink link, comm::Errhandler* handler,
                     Comm*& result, int error_here) {
    // Each step has its own tag. If a member skips a step, its later messages still match the right step.
    const View start = View::all(local_exchange);
    const View hear[] = {View::all(local_exchange), View::all(local_exchange)};
    const View agreement = View::all(local_exchange), end = View::all(local_exchange);
    for (int own = 0; own < 4; ++own) local_exchange.last_was_own();
    const bool leads = agreement.me == local_leader;
    LeaderEnvelope envelope;
    std::string bytes;
    if (const int wrong = co_await agree(start, error_here, "communicator")) {
        const ErrorHere ours(wrong);
        if (leads && link.channel) co_await talk_to_leader(link, local, wrong, envelope, bytes);
        co_return ours.or_else(MPI_SUCCESS);
    }
    int leader_error = MPI_SUCCESS;
    if (leads) leader_error = co_await talk_to_leader(link, local, MPI_SUCCESS, envelope, bytes);
    int error = co_await broadcast_other_group(hear, local_leader, leader_error, envelope, bytes);
    comm::Group* const remote = error ? nullptr : comm::decode_group(bytes);
    if (!error) error = check_remote(local, remote);
    const std::function<Comm*()> make = [&] {
        return make_intercomm(envelope.context, local.retain(), agreement.me, remote->retain(), envelope.local_first != 0,
                              handler);
    };
    Comm* made = nullptr;
    error = co_await end_creation(agreement, error, make, made);
    if (remote) remote->release();
    int verdict = MPI_SUCCESS;
    if (leads && !leader_error) co_await swap_verdicts(link, error, verdict);
    const int lost = co_await bcast(end, &verdict, sizeof verdict, byte_type(), local_leader);
    if (!error) error = lost;
    if (!error && verdict) error = fail(verdict, "a process of the other group could not create its part of the communicator");
    if (!error) result = made;
    if (error && made) made->release();
    co_return error;
}

// The channel of a group that does not have a communicator yet.
struct GroupChannel {
    comm::Group* group = nullptr;
    std::unique_ptr<message::MatchContext> channel;
    int users = 0;
};
using GroupChannels = std::map<uint64_t, GroupChannel>;
STARLING_STATE Lazy<GroupChannels> group_channels_made;
GroupChannels& group_channels() { return group_channels_made.get(); }

// Keeps the group channel while a creation uses it. A message of a second creation with the same name may arrive before the first one has
// ended here; it waits for the next channel.
class GroupChannelUse {
  public:
    GroupChannelUse(comm::Group& group, std::string_view name);
    ~GroupChannelUse();
    GroupChannelUse(const GroupChannelUse&) = delete;
    GroupChannelUse& operator=(const GroupChannelUse&) = delete;
    message::MatchContext& channel() { return *entry_->second.channel; }

  private:
    GroupChannels::iterator entry_;
};

GroupChannelUse::GroupChannelUse(comm::Group& group, std::string_view name) {
    const uint64_t hash = hash_on(hash_on(kEmptyHash, name), fingerprint(group));
    const uint64_t context = (hash & ~comm::kPlaneMask) | static_cast<uint64_t>(comm::Plane::from_group);
    entry_ = group_channels().try_emplace(context).first;
    GroupChannel& entry = entry_->second;
    ++entry.users;
    if (entry.channel) return;
    entry.group = group.retain();
    entry.channel = std::make_unique<message::MatchContext>(context, group, group.my_rank());
}

GroupChannelUse::~GroupChannelUse() {
    GroupChannel& entry = entry_->second;
    if (--entry.users > 0) return;
    message::orphan_messages(*entry.channel);
    entry.channel.reset();
    entry.group->release();
    group_channels().erase(entry_);
}

TaggedExchange exchange_of_group(comm::Group& group, message::MatchContext& channel, int tag) {
    std::vector<int> ranks(static_cast<size_t>(group.size()));
    for (size_t i = 0; i < ranks.size(); ++i) ranks[i] = static_cast<int>(i);
    return TaggedExchange(channel, std::move(ranks), group.my_rank(), tag, true);
}

// Tags on group channels: for creating an intra-communicator, an inter-communicator, and for the leaders' messages.
constexpr int kIntraTag = 0, kInterTag = 1, kLeaderTag = 2;
static_assert(kLeaderTag < TaggedExchange::kTags);

// Returns the group of the two leaders, in the order on which both agree: lower identity first.
comm::Group* leaders_of(const link::Process& a, const link::Process& b) {
    const auto id = [](const link::Process& p) { return std::pair(p.job->address().id, p.rank); };
    comm::GroupBuilder builder;
    builder.add(id(a) < id(b) ? a : b);
    builder.add(id(a) < id(b) ? b : a);
    return builder.build();
}

}  // namespace

Task create_intercomm(Comm& local, int local_leader, LeaderLink link, Comm*& result, int error_here) {
    co_return co_await exchange_groups(exchange_of(local), local.local_group(), local_leader, link, local.errhandler, result,
                                       error_here);
}

namespace {

/// Creates a communicator from a group. `whole`: a context with whose communicator the creation is revoked; null: none.
Task create_named(comm::Group& group, std::string_view name, const message::MatchContext* whole, comm::Errhandler* handler,
                  Comm*& result, int error_here) {
    const ErrorHere mine(error_here);
    GroupChannelUse use(group, name);
    use.channel().whole = whole;
    TaggedExchange exchange = exchange_of_group(group, use.channel(), kIntraTag);
    const View draw = View::all(exchange), agreement = View::all(exchange);
    uint64_t context = 0;
    const int error = mine.or_else(co_await draw_context(draw, context));
    const std::function<Comm*()> make = [&] { return make_intracomm(context, group.retain(), draw.me, handler); };
    co_return co_await end_creation(agreement, error, make, result);
}

}  // namespace

Task create_from_group(comm::Group& group, std::string_view name, comm::Errhandler* handler, Comm*& result, int error_here) {
    return create_named(group, name, nullptr, handler, result, error_here);
}

// Builds from the tag and the context a name that differs from every string of the program, and creates a communicator from the group. So
// the channel has exactly the participants as members. All of them notice a death among them; a death elsewhere in the communicator does
// not matter.
Task create_group(Comm& comm, comm::Group& group, int tag, Comm*& result, int error_here) {
    const uint64_t words[] = {0, comm.context(), static_cast<uint64_t>(tag)};
    const std::string_view name(reinterpret_cast<const char*>(words), sizeof words);
    if (comm.collective.revoked()) co_return message::why_revoked();
    co_return co_await create_named(group, name, &comm.collective, comm.errhandler, result, error_here);
}

Task create_intercomm_from_groups(comm::Group& local, int local_leader, RemoteLeader remote, std::string_view name,
                                  comm::Errhandler* handler, Comm*& result, int error_here) {
    GroupChannelUse use(local, name);
    TaggedExchange exchange = exchange_of_group(local, use.channel(), kInterTag);
    LeaderLink link;
    std::optional<GroupChannelUse> between_leaders;
    if (local.my_rank() == local_leader && remote.group) {
        comm::Group* leaders = leaders_of(link::self(), remote.group->at(remote.rank));
        link.channel = &between_leaders.emplace(*leaders, name).channel();
        link.remote_leader = 1 - leaders->my_rank();
        link.tag = kLeaderTag;
        leaders->release();
    }
    co_return co_await exchange_groups(exchange, local, local_leader, link, handler, result, error_here);
}

}  // namespace starling::collective
