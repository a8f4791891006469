// The life of a group: joining, testing and leaving.
#include <algorithm>
#include <vector>

#include "multicast/group.h"

namespace starling::multicast {

void MulticastGroup::apply(GroupEvent event, uint64_t now) {
    const GroupStep next = step(state_, event);
    const GroupState before = state_;
    state_ = next.next;
    if (before != state_ && state_ != GroupState::testing) ping_at_ = test_ends_ = UINT64_MAX;
    act(next.actions, now);
    if (state_ != GroupState::leaving) return;
    request_acks(now);
    if (outgoing_.drained() && event != GroupEvent::drained) apply(GroupEvent::drained, now);
}

void MulticastGroup::act(uint8_t actions, uint64_t now) {
    if (actions & kTellReady) {
        send_down(NoteKind::ready, leader(), test_);
        GroupDatagramHeader head{};
        head.magic = GroupDatagramHeader::kMagic, head.version = GroupDatagramHeader::kVersion, head.word = Word::ready;
        head.sender = static_cast<uint16_t>(me_);
        head.serial = test_;
        if (leader() == me_) outside_.to_group(head, nullptr, 0), outside_.flush();
    }
    // If this process takes no part, the notification applies to any test, because it may not know the number of the test for which others
    // wait.
    if (actions & kTellUnready) send_down(NoteKind::unready, me_, test_, !(actions & kLeave) && state_ == GroupState::absent);
    if (actions & kLeave) outside_.leave();
    if (actions & kJoin) silent_ = unreachable_ = false;
    if (actions & kTest) {
        test_ends_ = now + settings_.patience_ns * (leader() == me_ ? 1 : 2);
        if (leader() == me_) {
            ++test_;
            pinged_ = false;
            sent_of_it_ = 0;
            ping_pause_ = kPingNs;
            ping_at_ = now;
            run_test(now);
        }
    }
    if (actions & kJoin) apply(outside_.join() ? GroupEvent::joined : GroupEvent::refused, now);
}

void MulticastGroup::run_test(uint64_t now) {
    if (state_ != GroupState::testing) return;
    if (test_ends_ <= now) {
        silent_ = true;
        return apply(GroupEvent::silence, now);
    }
    if (ping_at_ > now) return;
    send_test(Word::ping);
    ping_at_ = now + ping_pause_;
    ping_pause_ = std::min(ping_pause_ * 2, kPingAtMostNs);
    answer(now);
}

/// Sends a ping or echo as long as the longest datagram, so that a member whose interface accepts less is not reached. Every kPingsAWay-th
/// one uses another rail.
void MulticastGroup::send_test(Word word) {
    if (sent_of_it_++ % kPingsAWay == kPingsAWay - 1) outside_.report_unreachable();
    const std::vector<std::byte> filling(settings_.fragment_bytes - Fragmentation::kDescription);
    GroupDatagramHeader head{};
    head.magic = GroupDatagramHeader::kMagic, head.version = GroupDatagramHeader::kVersion, head.word = word;
    head.sender = static_cast<uint16_t>(me_);
    head.serial = test_;
    outside_.to_group(head, filling.data(), static_cast<uint32_t>(filling.size()));
    outside_.flush();
}

void MulticastGroup::on_ping(uint32_t test, uint64_t now) {
    if (static_cast<int32_t>(test - test_) < 0) return;
    if (test != test_) {
        test_ = test;
        pinged_ = false;
        sent_of_it_ = 0;
    }
    if (state_ != GroupState::testing && state_ != GroupState::ready) return;
    pinged_ = true;
    if (state_ == GroupState::testing) test_ends_ = now + 2 * settings_.patience_ns;
    if (tree_.next(leader()) == me_) send_test(Word::echo);
    answer(now);
}

void MulticastGroup::on_echo(uint32_t test, uint64_t now) {
    if (leader() != me_ || test != test_ || state_ != GroupState::testing) return;
    pinged_ = true;
    answer(now);
}

/// Acknowledges the test to the parent once this member and all below it have received the ping.
void MulticastGroup::answer(uint64_t now) {
    if (state_ != GroupState::testing && state_ != GroupState::ready) return;
    const uint32_t root = leader();
    if (!pinged_ && !(root == me_ && alive() == 1)) return;
    bool all = true;
    tree_.each_child(root, me_, [&](uint32_t child) { all = all && pongs_[child] == test_; });
    if (!all) return;
    if (root == me_) {
        if (state_ == GroupState::testing) apply(GroupEvent::all_answer, now);
        return;
    }
    Note note = make_note(NoteKind::pong, root);
    note.serial = test_;
    outside_.note(tree_.parent(root, me_), note);
}

void MulticastGroup::send_down(NoteKind kind, uint32_t root, uint32_t test, bool any_test) {
    Note note = make_note(kind, root);
    note.urgent = any_test;
    note.serial = test;
    tree_.each_child(root, me_, [&](uint32_t child) { outside_.note(child, note); });
}

}  // namespace starling::multicast
