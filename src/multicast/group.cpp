#include "multicast/group.h"

#include "base/counter_start.h"

#include <algorithm>

namespace starling::multicast {

void MulticastGroup::Relay::record(uint32_t member, const Position& position) {
    for (auto& [who, what] : positions)
        if (who == member) return void(what = std::max(what, position));
    positions.emplace_back(member, position);
}

const Position* MulticastGroup::Relay::of(uint32_t member) const {
    for (const auto& [who, what] : positions)
        if (who == member) return &what;
    return nullptr;
}

MulticastGroup::MulticastGroup(std::vector<MemberName> members, uint32_t me, const GroupSettings& settings,
                               GroupEnvironment& outside, ReceiveQueue& desk)
    : members_(std::move(members)),
      me_(me),
      settings_(settings),
      outside_(outside),
      desk_(desk),
      tree_(static_cast<uint32_t>(members_.size())),
      dead_(members_.size()),
      outgoing_(static_cast<uint16_t>(me), settings.epoch, settings.fragment_bytes),
      from_(members_.size()),
      pongs_(members_.size(), kCounterStart) {}

uint64_t MulticastGroup::duplicates() const {
    uint64_t all = 0;
    for (const auto& one : from_)
        if (one) all += one->incoming.duplicates();
    return all;
}

uint32_t MulticastGroup::alive() const {
    uint32_t count = 0;
    for (uint32_t i = 0; i < size(); ++i) count += !tree_.is_out(i);
    return count;
}

MulticastGroup::From& MulticastGroup::from(uint32_t sender) {
    if (!from_[sender]) from_[sender] = std::make_unique<From>(desk_, members_[sender]);
    return *from_[sender];
}

Note MulticastGroup::make_note(NoteKind kind, uint32_t sender) const {
    Note note{};
    note.group = settings_.key;
    note.kind = kind;
    note.sender = static_cast<uint16_t>(sender);
    note.member = static_cast<uint16_t>(me_);
    return note;
}

/// Counts a member that has sent something as in the group again: it may have left an earlier group of the same members.
void MulticastGroup::rejoin(uint32_t member, uint64_t now) {
    if (member == me_ || dead_[member] || !tree_.set_out(member, false)) return;
    for (uint32_t sender = 0; sender < size(); ++sender)
        if (from_[sender]) report(sender, now);
}

void MulticastGroup::start(MulticastSend& send, uint64_t context, uint64_t call, const void* data, uint64_t bytes,
                           uint64_t now) {
    outgoing_.start(send, context, call, data, bytes, now);
    outgoing_.run(outside_, now);
    if (alive() == 1) count_completed(now);
}

void MulticastGroup::on_datagram(const GroupDatagram& datagram, uint64_t now) {
    const uint32_t sender = datagram.head.sender;
    if (sender == me_ || dead_[sender]) return;
    if (From* const source = from_[sender].get()) {
        source->received_at = now;
        source->singles = source->sent = 0;
    }
    handle(datagram, now);
}

void MulticastGroup::handle(const GroupDatagram& datagram, uint64_t now) {
    const GroupDatagramHeader& head = datagram.head;
    if (head.sender == me_ || dead_[head.sender]) return;
    rejoin(head.sender, now);
    switch (head.word) {
        case Word::ping:
            return on_ping(head.serial, now);
        case Word::echo:
            return on_echo(head.serial, now);
        case Word::ready:
            if (head.serial == test_) apply(GroupEvent::all_answer, now);
            return;
        case Word::data:
        case Word::heartbeat:
            break;
    }
    From& source = from(head.sender);
    const uint64_t epoch = source.incoming.epoch();
    if (!source.incoming.handle(datagram, now)) return;
    if (source.incoming.epoch() != epoch) source.relay = {};
    // The other members continued without this one: the members that they still wait for have all acknowledged data that this one misses.
    if (source.incoming.fetch_left_behind()) {
        left_behind_ = true;
        return apply(GroupEvent::unwanted, now);
    }
    if (head.word == Word::heartbeat) source.relay.urgent = true;
    report(head.sender, now);
}

void MulticastGroup::on_single(uint32_t teller, const GroupDatagram& datagram, uint64_t now) {
    if (dead_[teller]) return;
    rejoin(teller, now);
    handle(datagram, now);
    const GroupDatagramHeader& head = datagram.head;
    if (head.word == Word::data && teller == head.sender) count_single(head, now);
    if (head.word != Word::heartbeat || head.sender == me_ || !from_[head.sender]) return;
    if (teller == head.sender && state_ != GroupState::testing && state_ != GroupState::ready) {
        Note note = make_note(NoteKind::unready, me_);  // The sender has missed the earlier notification, so notify it again.
        note.serial = test_;
        outside_.note(teller, note);
    }
    From& source = *from_[head.sender];
    source.relay.sent.reset();  // The requesting member has not received the last acknowledgement, so it is sent again.
    report(head.sender, now);
    if (now - source.relay.requested_at < kAskAgainNs) return;
    source.relay.requested_at = now;
    request_below(head.sender, source.relay, head);
}

/// Detects that a sender's multicast does not arrive: several consecutive repeats by session, and no datagram to the group in between. A
/// process that did not poll for a while is not affected, as it finds the group's datagrams when it polls. If the sender has another rail,
/// its datagrams arrive after the notification; otherwise this process leaves the group.
void MulticastGroup::count_single(const GroupDatagramHeader& head, uint64_t now) {
    From& source = from(head.sender);
    ++source.singles;
    if (state_ != GroupState::ready || source.singles < kUnheardAfter || now - source.received_at < kUnheardNs) return;
    if (source.sent > 0 && head.serial == source.reported_serial && now - source.reported_at < kTellAgainNs) return;
    if (source.sent++ == 0) source.first_reported_at = now;
    source.reported_at = now;
    source.reported_serial = head.serial;
    Note note = make_note(NoteKind::not_received, head.sender);
    note.serial = head.serial;
    outside_.note(head.sender, note);
    if (source.sent < kDeafAfter || now - source.first_reported_at < kDeafNs) return;
    unreachable_ = true;
    apply(GroupEvent::abandoned, now);
}

void MulticastGroup::on_note(uint32_t teller, const Note& note, uint64_t now) {
    if (note.kind == NoteKind::left) return on_out(teller, false, now);
    if (dead_[teller]) return;
    rejoin(teller, now);
    const bool mine = note.sender == me_;
    switch (note.kind) {
        case NoteKind::pong:
            if (static_cast<int32_t>(note.serial - pongs_[teller]) > 0) pongs_[teller] = note.serial;
            return answer(now);
        case NoteKind::ready:
            if (note.serial != test_) return;
            return apply(GroupEvent::all_answer, now);
        case NoteKind::unready:
            if (!note.urgent && static_cast<int32_t>(note.serial - test_) < 0) return;
            send_down(NoteKind::unready, note.sender, note.serial, note.urgent);
            return apply(GroupEvent::unready, now);
        case NoteKind::ack: {
            if (note.epoch != static_cast<uint16_t>(mine ? settings_.epoch : from(note.sender).incoming.epoch())) return;
            (mine ? own_ : from(note.sender).relay).record(teller, {note.serial, note.fragment});
            return mine ? count_completed(now) : report(note.sender, now);
        }
        case NoteKind::missing: {
            const Missing missing{note.serial, note.fragment, note.mask, note.urgent != 0};
            if (!mine) return request_missing(note.sender, missing, note.member, now);
            if (note.epoch == static_cast<uint16_t>(settings_.epoch)) outgoing_.missed(missing, note.member, now);
            return;
        }
        case NoteKind::not_received:
            // Ignore reports about messages older than the last change of the rail. Ages are compared by distance from the next serial,
            // because any number of messages may have been sent since that change.
            if (!mine || outgoing_.next_serial() - note.serial > outgoing_.next_serial() - other_way_from_) return;
            other_way_from_ = outgoing_.next_serial();
            return outside_.report_unreachable();
        case NoteKind::left:
        case NoteKind::group_request:
        case NoteKind::datagram:
            return;
    }
}

void MulticastGroup::on_out(uint32_t member, bool dead, uint64_t now) {
    if (member == me_ || dead_[member]) return;
    const bool was_out = !tree_.set_out(member, true);
    dead_[member] = dead;
    if (was_out && !dead) return;
    if (dead) {
        desk_.fail(members_[member].job, members_[member].rank);
        from_[member].reset();
    }
    for (uint32_t sender = 0; sender < size(); ++sender)
        if (from_[sender]) report(sender, now);
    count_completed(now);
    // Pass the notification on again: the member that should have done so may have died before.
    if (state_ == GroupState::ready) return send_down(NoteKind::ready, leader(), test_);
    if (state_ != GroupState::testing) return;
    if (leader() == me_ && ping_at_ == UINT64_MAX) act(kTest, now);
    answer(now);
}

void MulticastGroup::restrict_to(const std::vector<bool>& in, uint64_t now) {
    for (uint32_t member = 0; member < size(); ++member) {
        if (in[member] || member == me_) continue;
        dead_[member] = true;
        tree_.set_out(member, true);
    }
    for (uint32_t sender = 0; sender < size(); ++sender)
        if (from_[sender]) report(sender, now);
    count_completed(now);
}

/// Returns the minimum of `position` and the positions of the members below this one in the sender's tree; empty while one of them has not
/// reported.
std::optional<Position> MulticastGroup::below(uint32_t sender, const Relay& relay, std::optional<Position> position) const {
    tree_.each_child(sender, me_, [&](uint32_t child) {
        const Position* const theirs = relay.of(child);
        if (!theirs)
            position.reset();
        else if (position && *theirs < *position)
            position = *theirs;
    });
    return position;
}

void MulticastGroup::report(uint32_t sender, uint64_t) {
    From& source = *from_[sender];
    if (!source.incoming.begun() || tree_.is_out(sender)) return;
    const std::optional<Position> all = below(sender, source.relay, source.incoming.position());
    if (!all) return;
    const uint32_t above = tree_.parent(sender, me_);
    Relay& relay = source.relay;
    if (relay.sent_to != above) relay.sent.reset();
    if (relay.sent && !(*relay.sent < *all)) return;
    const Position wanted = source.incoming.wanted();
    if (*all < wanted && !relay.urgent) return;
    if (relay.sent && !(*relay.sent < wanted) && !relay.urgent) return;
    relay.urgent = false;
    relay.sent = *all;
    relay.sent_to = above;
    Note note = make_note(NoteKind::ack, sender);
    note.epoch = static_cast<uint16_t>(source.incoming.epoch());
    note.serial = all->serial;
    note.fragment = static_cast<uint32_t>(all->fragment);
    outside_.note(above, note);
}

void MulticastGroup::count_completed(uint64_t now) {
    if (outgoing_.drained()) return;
    if (const auto all = below(me_, own_, Position{outgoing_.next_serial(), 0})) outgoing_.acknowledged(*all, now);
    if (state_ == GroupState::leaving && outgoing_.drained()) apply(GroupEvent::drained, now);
}

// Sends the request up the tree, so that fragments that many members miss are requested once. After requests without success, asks the
// sender directly.
void MulticastGroup::request_missing(uint32_t sender, const Missing& missing, uint16_t who, uint64_t now) {
    if (tree_.is_out(sender)) return;
    From& source = from(sender);
    Note note = make_note(NoteKind::missing, sender);
    note.epoch = static_cast<uint16_t>(source.incoming.epoch());
    note.urgent = missing.urgent;
    note.member = who;
    note.serial = missing.serial;
    note.fragment = missing.fragment;
    note.mask = missing.mask;
    if (missing.urgent) return outside_.note(sender, note);
    Relay& relay = source.relay;
    for (const auto& before : relay.forwarded) {
        if (now - before.at > kForgetNs || before.missing.serial != missing.serial || before.member == who) continue;
        if (before.missing.fragment > missing.fragment || missing.fragment - before.missing.fragment >= 64) continue;
        const uint32_t shift = missing.fragment - before.missing.fragment;
        const uint64_t same = before.missing.mask >> shift & missing.mask;
        if (before.member == Note::kSeveral && same == missing.mask) return;
        if (same) note.member = Note::kSeveral;
    }
    relay.forwarded[relay.next++ % kForwarded] = {missing, note.member, now};
    outside_.note(tree_.parent(sender, me_), note);
}

void MulticastGroup::request_below(uint32_t sender, const Relay& relay, const GroupDatagramHeader& head) {
    tree_.each_child(sender, me_, [&](uint32_t child) {
        const Position* const theirs = relay.of(child);
        if (!theirs || *theirs < Position{head.serial, 0}) outside_.to_member(child, head, nullptr, 0);
    });
}

bool MulticastGroup::run(uint64_t now) {
    bool any = outgoing_.run(outside_, now);
    if (outgoing_.unanswered() < reported_unanswered_) reported_unanswered_ = 0;
    if (outgoing_.unanswered() >= kHeartbeatsInVain && outgoing_.unanswered() > reported_unanswered_) {
        reported_unanswered_ = outgoing_.unanswered();
        request_below(me_, own_, outgoing_.heartbeat());
    }
    for (uint32_t sender = 0; sender < size(); ++sender) {
        if (!from_[sender] || from_[sender]->incoming.deadline() > now) continue;
        from_[sender]->incoming.request(
            now, [&](const Missing& missing) { request_missing(sender, missing, static_cast<uint16_t>(me_), now); });
        any = true;
    }
    run_test(now);
    if (!outgoing_.drained() && alive() == 1) count_completed(now);
    if (state_ == GroupState::leaving && outgoing_.drained()) apply(GroupEvent::drained, now);
    return any;
}

uint64_t MulticastGroup::deadline() const {
    uint64_t first = std::min({outgoing_.deadline(), ping_at_, test_ends_});
    for (const auto& one : from_)
        if (one) first = std::min(first, one->incoming.deadline());
    return first;
}

}  // namespace starling::multicast
