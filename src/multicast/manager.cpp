#include "multicast/manager.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/config.h"
#include "base/counters.h"
#include "base/error.h"
#include "base/state.h"
#include "link/peer.h"
#include "link/transports.h"
#include "multicast/pool.h"
#include "progress/engine.h"
#include "transport/multicast_groups.h"

namespace starling::multicast {

namespace {

constexpr uint64_t kLookNs = 20'000'000;          ///< interval of checks for dead members while an operation depends on a group
constexpr uint64_t kRestingLookNs = 500'000'000;  ///< interval of checks for dead members at other times
/// Pause before joining is tried again after a failure or an eviction; it doubles with each further failure.
constexpr uint64_t kRestNs = 1'000'000'000;
constexpr uint64_t kRestAtMostNs = 60'000'000'000;
constexpr uint64_t kTrustNs = 60'000'000'000;  ///< time for which a group must have been ready to reset its failure count
constexpr size_t kMostIdle = 64;               ///< limit of unused groups, kept for communicators with the same members

struct GroupManager {
    ReceiveQueue desk;
    std::unordered_map<uint64_t, std::unique_ptr<Membership>> all;  ///< all groups, by key
    std::vector<Membership*> order;                                 ///< all groups, the most recently used last
    uint64_t next = 0;                                              ///< time at which run() is called next, ns
    uint64_t check_at = 0, looked_at = 0;                           ///< ns
    uint64_t cost = 0;
    bool warned_silence = false, warned_unreachable = false;

    bool run(uint64_t now);
    void settle(Membership& one, uint64_t now);
    void drop_idle();
    bool make_room(const Membership& for_whom);
    void warn_silence();
    void warn_unreachable();
};
STARLING_STATE GroupManager* manager = nullptr;

bool holds_place(const Membership& one) {
    return one.group.state() != GroupState::absent && one.group.state() != GroupState::creating;
}

size_t places_in_use() {
    return static_cast<size_t>(
        std::count_if(manager->order.begin(), manager->order.end(), [](const Membership* one) { return holds_place(*one); }));
}

/// Makes room for a group. Evicts the least used group if it was used at most half as much as the new one, or any group without users.
bool GroupManager::make_room(const Membership& for_whom) {
    if (places_in_use() < static_cast<size_t>(config().multicast_groups)) return true;
    Membership* least = nullptr;
    const auto rank = [](const Membership& one) { return std::pair(one.users > 0, one.value); };
    for (Membership* one : order)
        if (one != &for_whom && holds_place(*one) && one->group.state() != GroupState::leaving &&
            (!least || rank(*one) < rank(*least)))
            least = one;
    if (!least || (least->users > 0 && least->value * 2 > for_whom.value)) return false;
    const uint64_t now = now_ns();
    least->rests_until = now + kRestNs;
    ++counters.groups_evicted;
    least->group.apply(GroupEvent::abandoned, now);
    check_again(*least);
    return !holds_place(*least);
}

// Warns, once per process, that members of a group did not answer the test. If all processes know of the problem, only one of them warns.
void GroupManager::warn_silence() {
    if (std::exchange(warned_silence, true) || config().verbose < 1) return;
    std::fprintf(stderr,
                 "starling: a test of a multicast group was not answered by all its members within %d ms, so collectives use "
                 "point-to-point messages. Switches that filter IGMP need a querier; STARLING_MULTICAST=off avoids the wait\n",
                 static_cast<int>(config().multicast_patience));
}

void GroupManager::warn_unreachable() {
    if (std::exchange(warned_unreachable, true) || config().verbose < 1) return;
    std::fprintf(
        stderr,
        "starling: rank %u no longer receives multicast, so collectives use point-to-point messages. Check that the switches "
        "have an IGMP querier, and that firewalls admit UDP to 239.0.0.0/8\n",
        link::self().rank);
}

/// Updates counters and pauses after a group's state has changed.
void GroupManager::settle(Membership& one, uint64_t now) {
    const GroupState state = one.group.state(), before = std::exchange(one.seen, state);
    if (state == before) return;
    counters.groups_usable += (state == GroupState::ready) - (before == GroupState::ready);
    if (state == GroupState::ready) {
        one.ready_at = now;
        ++counters.groups_ready;
        const uint64_t took = now - one.joined_at;
        cost = cost == 0 ? took : (3 * cost + took) / 4;
    } else if (before == GroupState::testing && (state == GroupState::leaving || state == GroupState::absent)) {
        if (one.group.was_silent()) {
            ++one.failures;
            if (one.group.leads()) warn_silence();
        }
    } else if (before == GroupState::ready) {
        if (!one.group.is_unreachable() || now - one.ready_at > kTrustNs) one.failures = 0;
        if (one.group.is_unreachable()) ++one.failures, warn_unreachable();
    }
    if (state == GroupState::absent)
        one.rests_until = std::max(one.rests_until, now + std::min(kRestNs << std::min(one.failures, 6u), kRestAtMostNs));
}

bool GroupManager::run(uint64_t now) {
    const bool look = now >= check_at;
    if (look) {
        looked_at = now;
        drop_idle();
    }
    bool any = false;
    next = UINT64_MAX;
    uint64_t patience = UINT64_MAX;
    for (size_t i = 0; i < order.size(); ++i) {
        Membership& one = *order[i];
        // Groups that this process has left are checked too, because it still passes on other members' notes about earlier messages.
        if (look) one.mark_dead(now);
        if (look || one.due <= now) {
            any |= one.group.run(now);
            settle(one, now);
            one.due = one.group.deadline();
        }
        const bool waits = one.seen == GroupState::testing || !one.group.outgoing().drained();
        patience = std::min(patience, waits ? kLookNs : kRestingLookNs);
        next = std::min(next, one.due);
    }
    if (poll_pool()) any = true, next = 0;
    check_at = patience == UINT64_MAX ? patience : looked_at + patience;
    next = std::min(next, check_at);
    return any;
}

bool poll() {
    const uint64_t now = now_ns();
    return now >= manager->next && manager->run(now);
}

/// Removes all but a few unused groups, whether joined or not. The remaining ones let a new communicator of the same members continue where
/// the last one ended.
void GroupManager::drop_idle() {
    size_t idle = 0;
    for (size_t i = order.size(); i-- > 0;) {
        Membership& one = *order[i];
        if (one.users > 0 || !one.group.outgoing().drained()) continue;
        if (one.pooled ? !is_finished(one) : one.of_own_job() && ++idle <= kMostIdle) continue;
        const uint64_t now = now_ns();
        one.group.apply(GroupEvent::abandoned, now);
        settle(one, now);
        if (holds_place(one)) continue;
        if (one.pooled) forget_in_pool(one);
        order.erase(order.begin() + static_cast<ptrdiff_t>(i));
        all.erase(one.name.key);
    }
}

void reply_left(link::Peer& peer, const Note& asked) {
    if (asked.kind != NoteKind::ack && asked.kind != NoteKind::missing && asked.kind != NoteKind::datagram) return;
    Note note{};
    note.group = asked.group;
    note.kind = NoteKind::left;
    link::send_control(peer, packet::PacketKind::multicast, &note, sizeof note);
}

void on_packet(link::Peer& peer, const link::Packet& packet) {
    Note note;
    if (packet.header.bytes < sizeof note) return;
    std::memcpy(&note, packet.payload, sizeof note);
    const auto found = manager ? manager->all.find(note.group) : decltype(manager->all.find(0)){};
    if (!manager || found == manager->all.end()) return reply_left(peer, note);
    Membership& one = *found->second;
    const uint32_t from = one.index_of({peer.job.address().id, peer.rank});
    if (from == one.group.size() || from == one.group.me() || !check(note, one.group.size())) return;
    const uint64_t now = now_ns();
    if (note.kind == NoteKind::group_request) {
        on_group_request(packet.payload + sizeof note, packet.header.bytes - sizeof note);
    } else if (note.kind == NoteKind::datagram) {
        GroupDatagram datagram;
        if (decode(packet.payload + sizeof note, packet.header.bytes - sizeof note, one.group.size(), datagram))
            one.group.on_single(from, datagram, now);
    } else {
        one.group.on_note(from, note, now);
        // A member was refused before this process tried to join, so wait before trying.
        if (note.kind == NoteKind::unready && one.group.state() == GroupState::absent)
            one.rests_until = std::max(one.rests_until, now + kRestNs);
    }
    check_again(one);
}

/// Fails receives from processes that have failed, whether or not a group currently has them as members. A process that has ended in order
/// has delivered all its multicasts (all_delivered()): it sent what has not begun to arrive down the tree, whose members may still pass it
/// on.
void on_failures() {
    std::vector<MemberName> failed;
    manager->desk.each_expected([&](uint64_t id, uint32_t rank) {
        link::Job* const job = link::job_with_id(id);
        if (!job || link::has_failed({job, rank})) failed.push_back({id, rank});
    });
    for (const MemberName& who : failed) manager->desk.fail(who.job, who.rank);
    const uint64_t now = now_ns();
    for (Membership* one : manager->order) {
        one->mark_dead(now);
        check_again(*one);
    }
}

}  // namespace

ReceiveQueue& desk() { return manager->desk; }

void check_again(Membership& membership) { membership.due = manager->next = 0; }

uint64_t cost_of_joining() { return manager->cost; }

Membership* make_group(std::span<const link::Process> members, uint32_t me, uint64_t number) {
    if (!manager) {
        manager = new GroupManager;
        link::register_handler(packet::PacketKind::multicast, on_packet);
        link::watch_failures(on_failures);
        progress::add_poller(poll);
        link::add_deadline([] { return manager->next; });
    }
    transport::GroupName name;
    if (name_of(members, number, name)) {
        clear_failure();
        return nullptr;
    }
    auto& place = manager->all[name.key];
    if (!place) {
        place = std::make_unique<Membership>(members, me, name, manager->desk);
        place->touched = check_again;
        place->may_join = [](Membership& self) { return manager->make_room(self); };
        manager->order.push_back(place.get());
    }
    Membership& one = *place;
    std::erase(manager->order, &one);
    manager->order.push_back(&one);
    check_again(one);
    return &one;
}

Membership* use(std::span<const link::Process> members, uint32_t me) {
    Membership* const one = make_group(members, me, 0);
    if (one) ++one->users;
    return one;
}

void release(Membership& membership) {
    if (--membership.users == 0) {
        // A ready group is not left, but kept for the next user.
        if (membership.pooled || membership.group.state() != GroupState::ready)
            membership.group.apply(GroupEvent::unwanted, now_ns());
        check_again(membership);
        manager->drop_idle();
    }
}

void want(Membership& membership, bool others_wait) {
    if (membership.group.state() != GroupState::absent) return;
    const uint64_t now = now_ns();
    if (now < membership.rests_until) {
        if (others_wait) membership.group.decline_test();
        return;
    }
    membership.rests_until = now + kRestNs;  // earliest time to try again if all group places of this process are in use
    membership.group.apply(GroupEvent::want, now);
    check_again(membership);
}

bool all_delivered() {
    if (!manager) return true;
    bool all = true;
    for (Membership* one : manager->order) {
        if (one->group.outgoing().drained()) continue;
        all = false;
        if (one->group.request_acks(now_ns())) check_again(*one);
    }
    return all;
}

}  // namespace starling::multicast
