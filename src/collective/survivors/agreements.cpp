#include "collective/survivors/agreements.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/no_destroy.h"
#include "base/state.h"
#include "collective/channel_exchange.h"
#include "collective/survivors/memory_agreements.h"
#include "comm/failures.h"
#include "link/address_lookup.h"
#include "link/failure_detector.h"
#include "link/peer.h"
#include "link/retry.h"
#include "message/closed_contexts.h"
#include "message/context_table.h"
#include "message/receive.h"
#include "mpi-ext.h"
#include "progress/engine.h"

namespace starling::collective {

namespace {

/// Payload of a `ballot` packet: one word of the ballot's sets, and the rest of the ballot.
struct BallotPart {
    uint64_t context;  ///< id of the communicator's collective match context
    uint64_t failed, acknowledged;
    uint64_t drawn;   ///< Ballot::context
    uint32_t number;  ///< number of the agreement in the communicator
    int32_t flag;
    uint16_t word;   ///< index of the word in the sets; words without failures are not sent
    uint16_t parts;  ///< number of packets of this ballot, which may arrive in any order
    uint16_t unsettled;
    Consensus::BallotKind kind;
    uint8_t serial;  ///< number of the ballot, modulo 256, among those of its sender in this agreement
};
static_assert(sizeof(BallotPart) == 48 && sizeof(BallotPart) <= link::PendingControl::kMost);

class GroupAgreements;

/// One agreement, and the ballots that have arrived in part.
struct Agreement {
    Agreement(GroupAgreements& its_group, uint32_t its_number);
    void take(int from, const BallotPart& part);

    struct ToMembers final : Consensus::Outside {
        ToMembers(GroupAgreements& its_group, uint32_t its_number) : group(its_group), number(its_number) {}
        bool has_failed(int member) const override;
        bool has_ended(int member) const override;
        void send(int member, Consensus::BallotKind kind, const Ballot& ballot) override;
        uint64_t draw_context() override { return comm::new_context(); }
        GroupAgreements& group;
        const uint32_t number;
        uint8_t serial = 0;
    } outside;
    Consensus consensus;
    /// A ballot of which some packets have arrived.
    struct Partial {
        explicit Partial(int members) : ballot(members) {
            std::fill(ballot.acknowledged.begin(), ballot.acknowledged.end(), 0);
        }
        Ballot ballot;
        std::vector<uint16_t> words;  ///< indices of the words that have arrived
    };
    std::map<std::pair<int, uint8_t>, Partial> partial;  ///< by sender and serial number
    progress::Request done{progress::RequestKind::collective};

    /// Asks the daemon now and then whether the members for which this one waits have called MPI_Finalize.
    void look_for_finalized(uint64_t now);

  private:
    uint64_t pause_ = 0, next_request_ = 0;  ///< pause before the next request, and its time; ns; 0: not waited yet
};

/// The agreements of one communicator.
class GroupAgreements {
  public:
    GroupAgreements(uint64_t its_context, comm::Group* its_members, int my_number)
        : context(its_context), members(its_members->retain()), me(my_number) {}
    ~GroupAgreements() { members->release(); }
    GroupAgreements(const GroupAgreements&) = delete;

    /// Starts the next agreement of this member; returns its number.
    uint32_t start() {
        unread.insert(drawn);
        return drawn++;
    }
    Agreement& at(uint32_t number) {
        std::unique_ptr<Agreement>& agreement = agreements[number];
        if (!agreement) agreement = std::make_unique<Agreement>(*this, number);
        return *agreement;
    }
    void take(int from, const BallotPart& part);
    /// Lets all agreements exclude whom one of them excludes: a later one goes on without a member that may wait for the decision of an
    /// earlier one, and this may have to come from here.
    void share_exclusions();
    /// Continues without the members that have called MPI_Finalize, if an agreement waits. Returns whether there were new ones.
    bool exclude_finalized(uint32_t polls, uint64_t now);
    /// Completes the agreements that have been decided and drops those that every living member has decided.
    void settle();
    void note_failures() {
        if (in_memory && has_failed_member()) in_memory->close();
        for (auto& [number, agreement] : agreements) agreement->consensus.note_failures();
        share_exclusions();
        settle();
    }

    /// Returns the agreements in memory; null if they are not possible.
    MemoryAgreements* find_memory() {
        if (!looked_for_memory_) in_memory = MemoryAgreements::find(*members, me, context);
        looked_for_memory_ = true;
        return in_memory.get();
    }
    /// Returns the agreements in memory, closed if a member has failed; null if they are not possible.
    MemoryAgreements* memory_until_failure() {
        // This member has not voted in memory, and will not. It need not close the words, since all others learn of the failure too.
        if (!looked_for_memory_ && has_member_that([](const link::Process& one) { return link::is_known_to_have_ended(one); }))
            return nullptr;
        if (find_memory() && has_failed_member()) in_memory->close();
        return in_memory.get();
    }
    /// Lets all members vote by messages if they have found different memory, and this one waits.
    void compare_memory() {
        if (looked_for_memory_ && !unread.empty()) MemoryAgreements::close_others(*members, me, context, in_memory.get());
    }
    /// Gives the memory back, because no further agreement begins and no call waits for one. The others have read the decisions there before
    /// they give it back, too.
    void leave_memory() {
        if (!unread.empty()) return;
        in_memory.reset();
        looked_for_memory_ = true;
        MemoryAgreements::leave(*members, me, context);
    }
    bool has_member_that(bool (*is_so)(const link::Process&)) const {
        for (int i = 0; i < members->size(); ++i)
            if (is_so(members->at(i))) return true;
        return false;
    }
    /// Returns whether a member has failed, or all exclude one.
    bool has_failed_member() const {
        return excluded != Ballot(members->size()).failed ||
               has_member_that([](const link::Process& one) { return link::has_failed_or_ended(one); });
    }

    /// Sends the decisions to all living members, because this process is about to forget them.
    void announce() {
        for (auto& [number, agreement] : agreements) agreement->consensus.leave();
    }

    const uint64_t context;
    comm::Group* const members;
    const int me;
    uint32_t drawn = 0;         ///< number of the agreements that this member has started
    std::set<uint32_t> unread;  ///< those of them whose decision no call has returned yet
    uint32_t settled = 0;       ///< all living members have decided the agreements below this number
    std::map<uint32_t, std::unique_ptr<Agreement>> agreements;
    Ballot::Members excluded{Ballot(members->size()).failed};  ///< members that all exclude (Consensus::confirmed())
    std::unique_ptr<MemoryAgreements> in_memory;               ///< null: not looked for yet, or not possible

  private:
    bool waits() const {
        return std::any_of(agreements.begin(), agreements.end(),
                           [](const auto& entry) { return entry.second->consensus.is_waiting(); });
    }
    bool looked_for_memory_ = false;
    std::map<int, uint32_t> seen_finalized_;  ///< members that have called MPI_Finalize, and at which poll this was seen first
};

Agreement::Agreement(GroupAgreements& its_group, uint32_t its_number)
    : outside(its_group, its_number), consensus(its_group.members->size(), its_group.me, outside, its_group.excluded) {}

bool Agreement::ToMembers::has_failed(int member) const { return link::has_failed_or_ended(group.members->at(member)); }

bool Agreement::ToMembers::has_ended(int member) const { return link::is_known_to_have_ended(group.members->at(member)); }

void Agreement::ToMembers::send(int member, Consensus::BallotKind kind, const Ballot& ballot) {
    if (link::has_left(group.members->at(member))) return;
    ++serial;
    std::vector<uint16_t> words;
    for (size_t word = 0; word < ballot.failed.size(); ++word)
        if (ballot.failed[word]) words.push_back(static_cast<uint16_t>(word));
    if (words.empty()) words.push_back(0);
    for (const uint16_t word : words) {
        const BallotPart part{group.context,
                              ballot.failed[word],
                              ballot.acknowledged[word],
                              ballot.context,
                              number,
                              ballot.flag,
                              word,
                              static_cast<uint16_t>(words.size()),
                              static_cast<uint16_t>(std::min<uint32_t>(ballot.unsettled, UINT16_MAX)),
                              kind,
                              serial};
        link::send_when_possible(group.members->at(member), packet::PacketKind::ballot, &part, sizeof part);
    }
}

void Agreement::take(int from, const BallotPart& part) {
    const auto place = partial.try_emplace({from, part.serial}, outside.group.members->size()).first;
    auto& [ballot, words] = place->second;
    if (part.word >= ballot.failed.size() || std::find(words.begin(), words.end(), part.word) != words.end()) return;
    words.push_back(part.word);
    ballot.failed[part.word] = part.failed;
    ballot.acknowledged[part.word] = part.acknowledged;
    if (words.size() < part.parts) return;
    ballot.flag = part.flag;
    ballot.context = part.drawn;
    ballot.unsettled = part.unsettled;
    const Ballot whole = std::move(ballot);
    partial.erase(place);
    consensus.receive(from, part.kind, whole);
}

// A process that calls MPI_Finalize notifies the processes with which it has communicated, but the notice may be lost. Most members for which
// this one waits only compute, so the pauses grow. This host knows the state of its own ranks.
void Agreement::look_for_finalized(uint64_t now) {
    constexpr uint64_t kFirstPauseNs = 300'000'000, kLongestPauseNs = 5'000'000'000;
    if (!consensus.is_waiting() || now < next_request_) return;
    const bool is_first_look = pause_ == 0;
    pause_ = is_first_look ? kFirstPauseNs : std::min(2 * pause_, kLongestPauseNs);
    next_request_ = now + pause_;
    if (is_first_look) return;
    for (const int member : consensus.awaited()) {
        link::Job& job = *outside.group.members->at(member).job;
        const uint32_t rank = outside.group.members->at(member).rank;
        if (job.mapped() && !job.segment().is_local(rank)) link::locate(job, rank);  // mapping a job would release the lock
    }
}

void GroupAgreements::take(int from, const BallotPart& part) {
    // A member that sends for an agreement below `settled` has decided it; nothing is left to do.
    if (static_cast<int32_t>(part.number - settled) < 0) return;
    if (in_memory) in_memory->close();
    at(part.number).take(from, part);
    share_exclusions();
    settle();
}

void GroupAgreements::share_exclusions() {
    const Ballot::Members before = excluded;
    for (const auto& [number, agreement] : agreements)
        for (size_t i = 0; i < excluded.size(); ++i) excluded[i] |= agreement->consensus.confirmed()[i];
    if (excluded == before) return;
    for (auto& [number, agreement] : agreements) agreement->consensus.exclude(excluded);
}

/// Polls that take everything which a process had sent to this one before it was seen to have called MPI_Finalize.
constexpr uint32_t kPollsTakeAll = 8;

// A decision of such a member counts, so what it has sent is handled first.
bool GroupAgreements::exclude_finalized(uint32_t polls, uint64_t now) {
    for (auto& [number, agreement] : agreements) agreement->look_for_finalized(now);
    // The members then vote by messages, and exclude it there.
    if (in_memory && !unread.empty() && has_member_that(link::has_left)) in_memory->close();
    if (!waits()) return false;
    Ballot left(members->size());
    bool any = false;
    for (int member = 0; member < members->size(); ++member) {
        if (member == me || Ballot::contains(excluded, member) || !link::has_left(members->at(member))) continue;
        const uint32_t since = seen_finalized_.try_emplace(member, polls).first->second;
        if (polls - since < kPollsTakeAll) continue;
        Ballot::insert(left.failed, member);
        any = true;
    }
    if (!any) return false;
    for (auto& [number, agreement] : agreements) agreement->consensus.exclude(left.failed);
    share_exclusions();
    settle();
    return true;
}

void GroupAgreements::settle() {
    for (auto& [number, agreement] : agreements) {
        if (!agreement->consensus.decided()) continue;
        settled = std::max(settled, number - std::min(number, agreement->consensus.ballot().unsettled));
        if (!agreement->done.done) agreement->done.complete();
    }
    // This member's calls have read these agreements: an unread one counts as undecided here.
    agreements.erase(agreements.begin(), agreements.lower_bound(settled));
}

struct Known {
    std::map<uint64_t, std::unique_ptr<GroupAgreements>> groups;  ///< by context id
    std::deque<uint64_t> closed;                                  ///< destroyed communicators, oldest first
    /// Packets for communicators that this process has not created yet. They hold the jobs of their senders.
    struct Early {
        link::Process from;
        BallotPart part;
        link::JobHold hold{from.job};
    };
    std::list<Early> early;
};
STARLING_STATE Lazy<Known> known_agreements;
STARLING_STATE int waiting_calls = 0;  ///< calls that wait for a decision

/// Drops the early packets of terminated members, which a consensus ignores, and those for contexts that were retired meanwhile.
void drop_stale_packets() {
    known_agreements.get().early.remove_if(
        [](const Known::Early& one) { return link::has_failed_or_ended(one.from) || message::is_retired(one.part.context); });
}

GroupAgreements& agreements_of(const comm::Comm& comm) {
    std::unique_ptr<GroupAgreements>& group = known_agreements.get().groups[comm.collective.context()];
    if (group) return *group;
    exchange_of(const_cast<comm::Comm&>(comm));  // its destruction calls close_agreements()
    comm::GroupBuilder members;
    for (int i = 0; i < comm.collective.roster().size(); ++i) members.add(comm.collective.roster().at(i));
    comm::Group* const all = members.build();
    group = std::make_unique<GroupAgreements>(comm.collective.context(), all, comm.collective.my_rank());
    all->release();
    std::list<Known::Early>& early = known_agreements.get().early;
    std::list<Known::Early> mine;
    for (auto one = early.begin(); one != early.end();) {
        const auto here = one++;
        if (here->part.context == group->context) mine.splice(mine.end(), early, here);
    }
    for (const Known::Early& one : mine)
        if (const int member = group->members->rank_of(one.from); member != MPI_UNDEFINED) group->take(member, one.part);
    return *group;
}

GroupAgreements* find_agreements(uint64_t context) {
    const auto found = known_agreements.get().groups.find(context);
    if (found != known_agreements.get().groups.end()) return found->second.get();
    const message::MatchContext* const channel = message::directory.find(context);
    return channel && channel->owner ? &agreements_of(*static_cast<const comm::Comm*>(channel->owner)) : nullptr;
}

void on_ballot(link::Peer& peer, const link::Packet& packet) {
    BallotPart part;
    if (packet.header.bytes != sizeof part) return;
    std::memcpy(&part, packet.payload, sizeof part);
    const link::Process from{&peer.job, peer.rank};
    GroupAgreements* const group = find_agreements(part.context);
    if (!group) {
        drop_stale_packets();
        if (!message::is_retired(part.context)) known_agreements.get().early.push_back({from, part});
        return;
    }
    const int member = group->members->rank_of(from);
    if (member != MPI_UNDEFINED) group->take(member, part);
}

void note_failures_everywhere() {
    drop_stale_packets();
    for (auto& [context, group] : known_agreements.get().groups) group->note_failures();
}

// Looks every 20 ms for members that have called MPI_Finalize, as check_liveness() looks for failures, and for members that use other memory.
// Nothing else reports them: a process that ends normally is no failure.
bool look_for_absent_members() {
    constexpr uint64_t kIntervalNs = 20'000'000;
    STARLING_STATE static uint32_t polls = 0;
    STARLING_STATE static uint64_t next_look = 0;
    if (waiting_calls == 0) return false;
    ++polls;
    const uint64_t now = now_ns();
    if (now < next_look) return false;
    next_look = now + kIntervalNs;
    bool any = false;
    for (auto& [context, group] : known_agreements.get().groups) {
        group->compare_memory();
        any |= group->exclude_finalized(polls, now);
    }
    return any;
}

/// Adds the failures of a decision to those that the program can acknowledge. This process may not know them otherwise.
void note_failures(comm::Comm& comm, const Ballot::Members& failed) {
    std::vector<int>& known = comm.failures.ranks;
    for (int member = 0; member < comm.collective.roster().size(); ++member)
        if (Ballot::contains(failed, member) && std::find(known.begin(), known.end(), member) == known.end())
            known.push_back(member);
}

/// Votes by messages in agreement `number`, which this member has started.
Agreement& vote(comm::Comm& comm, GroupAgreements& group, uint32_t number, int flag) {
    Ballot mine(group.members->size());
    mine.flag = flag;
    const comm::KnownFailures& failures = comm::known_failures(comm);
    std::fill(mine.acknowledged.begin(), mine.acknowledged.end(), 0);
    for (size_t i = 0; i < failures.ranks.size(); ++i) {
        if (i < failures.acknowledged) Ballot::insert(mine.acknowledged, failures.ranks[i]);
    }
    mine.unsettled = number - std::min(number, *group.unread.begin());
    Agreement& agreement = group.at(number);
    agreement.consensus.vote(mine);
    group.share_exclusions();
    group.settle();
    return agreement;
}

Ballot without_failures(const GroupAgreements& group, const MemoryAgreements::Result& result) {
    Ballot decision(group.members->size());
    decision.flag = result.flag;
    decision.context = result.context;
    return decision;
}

/// A call that waits for a decision, until its destructor runs.
struct WaitingCall {
    WaitingCall() {
        progress::add_poller(look_for_absent_members);
        ++waiting_calls;
    }
    ~WaitingCall() { --waiting_calls; }
    WaitingCall(const WaitingCall&) = delete;
};

/// Votes in memory in agreement `number`, which this member has started, and waits. Sets the decision if it was made in memory.
Task agree_in_memory(comm::Comm& comm, GroupAgreements& group, uint32_t number, int flag, Ballot& decision) {
    MemoryAgreements& memory = *group.in_memory;
    const WaitingCall waiting;
    co_await memory.turn(number);
    if (!comm.failures.ranks.empty() || group.has_failed_member()) memory.close();
    if (!memory.closed()) memory.vote(number, flag);
    co_await memory.outcome(number);
    if (memory.decided(number)) {
        decision = without_failures(group, memory.read(number));
        group.unread.erase(number);
    }
    co_return MPI_SUCCESS;
}

/// Votes in the next agreement of the communicator and waits for the decision.
Task vote_and_wait(comm::Comm& comm, int flag, Ballot& decision) {
    GroupAgreements& group = agreements_of(comm);
    const uint32_t number = group.start();
    if (group.memory_until_failure()) {
        co_await agree_in_memory(comm, group, number, flag, decision);
        if (group.in_memory->decided(number)) co_return MPI_SUCCESS;
    }
    Agreement& agreement = vote(comm, group, number, flag);
    if (!agreement.done.done) {
        const WaitingCall waiting;
        co_await progress::RequestDone{agreement.done};
    }
    decision = agreement.consensus.ballot();
    note_failures(comm, decision.failed);
    group.unread.erase(number);
    co_return MPI_SUCCESS;
}

/// Returns the members of `group`, whose first member has the number `base`, that are not in `failed`.
comm::Group* living(const comm::Group& group, int base, const Ballot::Members& failed) {
    std::vector<bool> excluded(static_cast<size_t>(group.size()));
    for (int i = 0; i < group.size(); ++i) excluded[static_cast<size_t>(i)] = Ballot::contains(failed, base + i);
    return comm::exclude(group, excluded);
}

comm::Comm* make_shrunk(comm::Comm& comm, const Ballot& decision) {
    const Exchange& exchange = exchange_of(comm);
    comm::Group* const local = living(comm.local_group(), exchange.local_base, decision.failed);
    if (!comm.is_inter) return make_intracomm(decision.context, local, local->my_rank(), comm.errhandler);
    comm::Group* const remote = living(comm.remote_group(), exchange.remote_base, decision.failed);
    if (remote->size() > 0)
        return make_intercomm(decision.context, local, local->my_rank(), remote, comm.local_first, comm.errhandler);
    local->release();
    remote->release();
    return nullptr;
}

}  // namespace

void start_agreements() {
    link::register_handler(packet::PacketKind::ballot, on_ballot);
    message::watch_failures(note_failures_everywhere);
}

Task agree_among_living(comm::Comm& comm, int& flag) {
    Ballot decision(0);
    co_await vote_and_wait(comm, flag, decision);
    flag = decision.flag;
    if (decision.all_acknowledged()) co_return MPI_SUCCESS;
    co_return fail(MPIX_ERR_PROC_FAILED, "a member of the communicator has failed, and not all members have acknowledged it");
}

void withdraw(comm::Comm& comm) {
    GroupAgreements& group = agreements_of(comm);
    // The others must not wait in memory for a vote of this member.
    if (MemoryAgreements* const memory = group.find_memory()) memory->close();
    group.at(group.start()).consensus.withdraw();
}

Task shrink(comm::Comm& comm, comm::Comm*& result) {
    Ballot decision(0);
    co_await vote_and_wait(comm, ~0, decision);
    if (const int error = comm::check_context(decision.context)) co_return error;
    if (Ballot::contains(decision.failed, comm.collective.my_rank())) {
        message::retire_context(decision.context);
        co_return fail(MPIX_ERR_PROC_FAILED,
                       "another member regards this process as failed, so the new communicator is without it");
    }
    result = make_shrunk(comm, decision);
    if (result) co_return MPI_SUCCESS;
    co_return fail(MPIX_ERR_PROC_FAILED, "no member of one of the two groups lives");
}

void announce_decisions() {
    for (auto& [context, group] : known_agreements.get().groups) group->announce();
}

void close_agreements(const comm::Comm& comm) {
    // A predefined id is used again. Its agreements continue with the next number, on every member.
    if (!comm::is_drawn(comm.context())) return;
    const auto found = known_agreements.get().groups.find(comm.collective.context());
    if (found == known_agreements.get().groups.end()) return;
    found->second->leave_memory();
    Known& all = known_agreements.get();
    all.closed.push_back(found->first);
    if (all.closed.size() <= kClosedKept) return;
    // A member may still need these decisions after a failure, so each gets them now. Sending may release the lock, and another thread may
    // close a communicator meanwhile, so the oldest entry leaves the table first.
    const auto oldest = all.groups.extract(all.closed.front());
    all.closed.pop_front();
    oldest.mapped()->announce();
}

}  // namespace starling::collective
