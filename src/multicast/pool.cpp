#include "multicast/pool.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/config.h"
#include "base/counters.h"
#include "base/state.h"
#include "multicast/manager.h"

namespace starling::multicast {

namespace {

/// Match context of the multicast messages that assign pool groups.
constexpr uint64_t kClaims = 1;
constexpr size_t kRemembered = 256;

/// The message that assigns a pool group: the communicator's context, and a bit for each member of the pool.
struct AddressClaim {
    uint64_t context = 0;
    std::vector<std::byte> bits;

    explicit AddressClaim(size_t members) : bits((members + 7) / 8) {}
    void add(size_t member) { bits[member / 8] |= std::byte(1u << member % 8); }
    bool has(size_t member) const { return (bits[member / 8] >> member % 8 & std::byte(1)) != std::byte(0); }
    std::vector<std::byte> bytes() const {
        std::vector<std::byte> out(sizeof context);
        std::memcpy(out.data(), &context, sizeof context);
        out.insert(out.end(), bits.begin(), bits.end());
        return out;
    }
    bool read(const std::byte* data, size_t count) {
        if (count != sizeof context + bits.size()) return false;
        std::memcpy(&context, data, sizeof context);
        std::copy(data + sizeof context, data + count, bits.begin());
        return true;
    }
};

/// A pool group that has not been assigned.
struct Ready {
    uint64_t number;
    Membership* membership;
    std::vector<std::byte> memory;  ///< buffer for the assignment
    MulticastReceive claim;
    MulticastSend send;
    bool was_ready = false;

    MessageLabel label(const link::Process& first) const { return {first.job->address().id, kClaims, number, first.rank}; }
    /// Returns whether the group was ready, and is not any more: it was evicted, or assigned before the assignment arrived here. This
    /// process then still awaits the assignment, because the communicator that has the group may send to it, and counts on its
    /// acknowledgements.
    bool is_lost() {
        const GroupState state = membership->group.state();
        was_ready = was_ready || state == GroupState::ready;
        return was_ready && state == GroupState::absent;
    }
};

struct GroupPool {
    std::vector<link::Process> members;  ///< leaders of the job's hosts
    uint32_t me = 0;
    std::vector<std::unique_ptr<Ready>> ready;  ///< groups not assigned to a communicator yet, by number
    std::vector<std::unique_ptr<Ready>> lost;   ///< groups that this process has left, but whose assignment may still arrive
    std::deque<uint64_t> granted;  ///< contexts that got a group recently, because a request may arrive more than once
    std::unordered_map<uint64_t, Membership*> assigned;  ///< assigned groups by context

    void add(uint64_t number);
    void apply(const AddressClaim& claim, Membership& membership);
    void grant(const AddressClaim& claim);
    bool adopt_claim(Ready& one);
};
STARLING_STATE GroupPool* pool = nullptr;

void GroupPool::add(uint64_t number) {
    Membership* const membership = make_group(members, me, number);
    if (!membership) return;
    auto one = std::make_unique<Ready>();
    one->number = number;
    one->membership = membership;
    membership->pooled = true;
    if (me != 0) {
        one->memory.resize(sizeof(uint64_t) + (members.size() + 7) / 8);
        one->claim.memory = one->memory.data();
        one->claim.bytes = one->memory.size();
        desk().post(one->claim, one->label(members[0]));
    }
    want(*membership);
    ready.push_back(std::move(one));
}

/// Applies an assignment: members that are not included leave the group, and the others keep it for the communicator.
void GroupPool::apply(const AddressClaim& claim, Membership& membership) {
    const uint64_t now = now_ns();
    std::vector<bool> in(members.size());
    for (size_t i = 0; i < in.size(); ++i) in[i] = claim.has(i);
    membership.group.restrict_to(in, now);
    membership.taken = true;
    membership.lost = false;
    if (in[me] && !desk().is_closed(claim.context))
        assigned[claim.context] = &membership;
    else
        membership.group.apply(GroupEvent::unwanted, now);
    check_again(membership);
}

void GroupPool::grant(const AddressClaim& claim) {
    const auto at = std::find_if(ready.begin(), ready.end(), [&](const auto& one) {
        return one->membership->group.may_send(claim.bits.size() + sizeof claim.context);
    });
    if (at == ready.end() || std::find(granted.begin(), granted.end(), claim.context) != granted.end()) return;
    granted.push_back(claim.context);
    if (granted.size() > kRemembered) granted.pop_front();
    std::unique_ptr<Ready> one = std::move(*at);
    ready.erase(at);
    Membership& membership = *one->membership;
    const std::vector<std::byte> bytes = claim.bytes();
    membership.group.start(one->send, kClaims, one->number, bytes.data(), bytes.size(), now_ns());
    ++counters.groups_from_pool;
    apply(claim, membership);
    add(one->number + static_cast<uint64_t>(config().multicast_pool));
}

}  // namespace

void fill_pool() {
    if (pool) return;
    pool = new GroupPool;
    link::Job& job = *link::self().job;
    const job::JobSegment& segment = job.segment();
    std::vector<bool> seen;
    for (uint32_t rank = 0; rank < segment.header().size; ++rank) {
        const uint32_t host = segment.host_of(rank);
        if (host >= seen.size()) seen.resize(host + 1);
        if (seen[host]) continue;
        seen[host] = true;
        pool->members.push_back({&job, rank});
    }
    const auto me = std::find(pool->members.begin(), pool->members.end(), link::self());
    pool->me = static_cast<uint32_t>(me - pool->members.begin());
    if (me == pool->members.end() || pool->members.size() < 3) return;
    for (uint64_t number = 1; number <= static_cast<uint64_t>(config().multicast_pool); ++number) pool->add(number);
}

void request_from_pool(uint64_t context, std::span<const link::Process> members) {
    if (!pool || pool->ready.empty()) return;
    AddressClaim claim(pool->members.size());
    claim.context = context;
    for (const link::Process& member : members) {
        const auto at = std::find(pool->members.begin(), pool->members.end(), member);
        if (at == pool->members.end()) return;
        claim.add(static_cast<size_t>(at - pool->members.begin()));
    }
    if (pool->me == 0) return pool->grant(claim);
    const std::vector<std::byte> bytes = claim.bytes();
    pool->ready.front()->membership->request_group(0, bytes.data(), static_cast<uint32_t>(bytes.size()));
}

Membership* assigned_by_pool(uint64_t context) {
    if (!pool) return nullptr;
    const auto found = pool->assigned.find(context);
    return found == pool->assigned.end() ? nullptr : found->second;
}

void forget_in_pool(uint64_t context) {
    if (!pool) return;
    const auto found = pool->assigned.find(context);
    if (found == pool->assigned.end()) return;
    Membership& membership = *found->second;
    pool->assigned.erase(found);
    if (membership.users > 0) return;
    membership.group.apply(GroupEvent::unwanted, now_ns());  // The communicator has ended without using its group.
    check_again(membership);
}

void forget_in_pool(Membership& membership) {
    std::erase_if(pool->assigned, [&](const auto& one) { return one.second == &membership; });
    std::erase_if(pool->lost, [&](const auto& one) {
        if (one->membership != &membership) return false;
        desk().withdraw(one->claim, one->label(pool->members[0]));
        return true;
    });
    if (pool->me == 0) membership.announce_leave();
}

bool is_finished(const Membership& membership) {
    const MulticastGroup& group = membership.group;
    if (group.state() != GroupState::absent || !membership.taken) return false;
    if (membership.lost && !group.is_out(0) && !group.left_behind()) return false;
    return std::none_of(pool->assigned.begin(), pool->assigned.end(),
                        [&](const auto& one) { return one.second == &membership; });
}

void on_group_request(const std::byte* wish, size_t bytes) {
    if (!pool || pool->me != 0 || pool->members.empty()) return;
    AddressClaim claim(pool->members.size());
    if (claim.read(wish, bytes)) pool->grant(claim);
}

/// Applies the group's assignment if it has arrived; returns whether it has.
bool GroupPool::adopt_claim(Ready& one) {
    if (!one.claim.done) return false;
    AddressClaim claim(members.size());
    if (one.claim.outcome.error == MPI_SUCCESS && claim.read(one.memory.data(), one.claim.outcome.bytes))
        apply(claim, *one.membership);
    one.membership->taken = true;
    one.membership->lost = false;
    return true;
}

bool poll_pool() {
    if (!pool) return false;
    bool any = std::erase_if(pool->lost, [](const auto& one) { return pool->adopt_claim(*one); }) > 0;
    for (size_t i = 0; i < pool->ready.size(); ++i) {
        const bool claimed = pool->adopt_claim(*pool->ready[i]);
        if (!claimed && !pool->ready[i]->is_lost()) continue;
        std::unique_ptr<Ready> one = std::move(pool->ready[i]);
        pool->ready.erase(pool->ready.begin() + static_cast<ptrdiff_t>(i--));
        const uint64_t next = one->number + static_cast<uint64_t>(config().multicast_pool);
        one->membership->taken = true;
        one->membership->lost = !claimed && pool->me != 0;
        if (one->membership->lost) pool->lost.push_back(std::move(one));
        pool->add(next);
        any = true;
    }
    return any;
}

}  // namespace starling::multicast
