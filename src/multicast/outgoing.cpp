#include "multicast/outgoing.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/counters.h"

namespace starling::multicast {

// Returns whether a message of this size may be sent now. Receivers store unexpected data up to a limit, then acknowledge nothing until
// they post receives. So a message must not depend on acknowledgements of other messages: it is the only one, or fits whole into the
// window.
bool Outgoing::takes(uint64_t bytes) const {
    if (messages_.empty()) return true;
    return bytes <= kMostCopied && next_ == messages_.size() && in_flight() + cut(bytes).count() <= window_ &&
           messages_.size() < kMostMessages && kept_ + bytes <= kMostKept;
}

void Outgoing::start(MulticastSend& send, uint64_t context, uint64_t call, const void* data, uint64_t bytes, uint64_t now) {
    OutgoingMessage message{
        context, call, bytes, static_cast<const std::byte*>(data), {}, &send, cut(bytes).count(), 0, {}};
    const bool copied = bytes <= kMostCopied;
    if (copied) {
        message.copy.assign(message.data, message.data + bytes);
        message.send = nullptr;
        kept_ += bytes;
    }
    messages_.push_back(std::move(message));
    if (copied) messages_.back().data = messages_.back().copy.data();
    gap_ = (7 * gap_ + std::min(now - started_at_, kSparseHeartbeatNs)) / 8;
    started_at_ = now;
    hurried_ = false;
    pause_ = until_next();
    heartbeats_ = 0;
    heartbeat_at_ = now + pause_;
    if (copied) send.complete();
}

uint64_t Outgoing::calm() const {
    if (hurried_) return kHeartbeatNs;
    // While a long message is sent, most answers arrive. Each superfluous heartbeat costs a packet per member.
    const bool is_long = !messages_.empty() && messages_.front().send;
    return is_long ? std::clamp(4 * answer_ns_, kHeartbeatNs, 4 * kCalmHeartbeatNs) : calm_;
}

uint64_t Outgoing::until_next() const {
    const uint64_t least = calm();
    return least == kCalmHeartbeatNs && 2 * gap_ <= kSparseHeartbeatNs ? std::max(least, 2 * gap_) : least;
}

bool Outgoing::request_acks(uint64_t now) {
    if (std::exchange(hurried_, true)) return false;
    pause_ = kHeartbeatNs;
    heartbeat_at_ = std::min(heartbeat_at_, now);
    return true;
}

Outgoing::OutgoingMessage* Outgoing::find(uint32_t serial) {
    const uint32_t at = serial - first_;
    return at < messages_.size() ? &messages_[at] : nullptr;
}

GroupDatagramHeader Outgoing::head_of(const OutgoingMessage& message, uint32_t serial, uint64_t fragment) const {
    return {GroupDatagramHeader::kMagic,
            GroupDatagramHeader::kVersion,
            Word::data,
            me_,
            0,
            epoch_,
            serial,
            first_,
            static_cast<uint32_t>(fragment),
            fragment_bytes_,
            message.context,
            message.call,
            message.bytes};
}

const std::byte* Outgoing::body_of(const OutgoingMessage& message, uint64_t fragment, uint32_t& bytes) const {
    bytes = cut(message.bytes).length(fragment);
    return message.data + cut(message.bytes).offset(fragment);
}

GroupDatagramHeader Outgoing::heartbeat() const {
    const uint64_t sent = messages_.empty() ? 0 : messages_.front().sent;
    return {GroupDatagramHeader::kMagic,
            GroupDatagramHeader::kVersion,
            Word::heartbeat,
            me_,
            0,
            epoch_,
            first_ + next_ + (next_ < messages_.size() && messages_[next_].sent > 0),
            first_,
            static_cast<uint32_t>(sent),
            0,
            0,
            0,
            0};
}

uint64_t Outgoing::in_flight() const { return sent_ - acked_fragments_; }

bool Outgoing::send_new(GroupTransmitter& wire, uint64_t now) {
    bool any = false;
    while (next_ < messages_.size() && (next_ > 0 || in_flight() < window_)) {
        OutgoingMessage& message = messages_[next_];
        GroupDatagramHeader head = head_of(message, first_ + next_, message.sent);
        uint32_t bytes;
        const std::byte* const body = body_of(message, message.sent, bytes);
        const bool ends = message.sent + 1 == message.fragments;
        // A full window asks only if it holds no earlier question. Otherwise each answer lets a few datagrams out, whose last one asks again.
        const bool fills = in_flight() + 1 >= window_ && asked_ <= acked_fragments_;
        const bool ask = ++unasked_ >= std::min(window_ / 2, kUnasked) || fills || (ends && message.send);
        if (ask) head.flags = GroupDatagramHeader::kAckNow;
        if (!wire.to_group(head, body, bytes)) {
            stuck_ = true;
            return any;
        }
        any = true;
        ++sent_;
        if (ask) unasked_ = 0, asked_ = sent_, asked_at_ = now;
        ++message.sent;
        if (ends) ++next_;
        heartbeat_at_ = now + pause_;
    }
    return any;
}

/// Returns whether the fragment was repeated so recently that a further request must wait.
bool Outgoing::is_on_its_way(OutgoingMessage& message, const Wish& wish, uint64_t now) {
    const auto at = message.repeated_at.find(uint64_t{wish.fragment} << 16 | wish.member);
    return at != message.repeated_at.end() && now - at->second < (wish.member == Note::kSeveral ? kRepeatNs : kSingleAgainNs);
}

/// Repeats a fragment. Returns false if there is no space to send it now.
bool Outgoing::repeat(GroupTransmitter& wire, const Wish& wish, uint64_t now) {
    OutgoingMessage* const message = find(wish.serial);
    if (!message || wish.fragment >= message->sent || is_on_its_way(*message, wish, now)) return true;
    const GroupDatagramHeader head = head_of(*message, wish.serial, wish.fragment);
    uint32_t bytes;
    const std::byte* const body = body_of(*message, wish.fragment, bytes);
    const bool several = wish.member == Note::kSeveral;
    if (several ? !wire.to_group(head, body, bytes) : !wire.to_member(wish.member, head, body, bytes)) return false;
    message->repeated_at[uint64_t{wish.fragment} << 16 | wish.member] = now;
    ++repeated_;
    ++counters.group_repeats;
    return true;
}

// Repeats the requested fragments. If there is no space to send to one member, repeats to others are not delayed.
bool Outgoing::repeat(GroupTransmitter& wire, uint64_t now) {
    std::deque<Wish> later;
    const size_t count = requests_.size();
    for (const Wish& wish : std::exchange(requests_, {}))
        if (!repeat(wire, wish, now)) later.push_back(wish);
    requests_ = std::move(later);
    if (!requests_.empty())
        stuck_ = true;
    else
        requests_at_ = UINT64_MAX;
    return requests_.size() < count;
}

bool Outgoing::run(GroupTransmitter& wire, uint64_t now) {
    stuck_ = false;
    bool any = requests_at_ <= now && repeat(wire, now);
    any |= send_new(wire, now);
    if (!messages_.empty() && heartbeat_at_ <= now) {
        ++heartbeats_;
        wire.to_group(heartbeat(), nullptr, 0);
        // The first heartbeat was delayed to await a next message. None was sent, so data may have been lost: shorten the pause.
        if (heartbeats_ == 1) pause_ = std::min(pause_, calm_);
        pause_ = std::min(pause_ * 2, kHeartbeatAtMostNs);
        heartbeat_at_ = now + pause_;
    }
    wire.flush();
    return any;
}

uint64_t Outgoing::deadline() const {
    if (stuck_) return 0;
    return std::min(requests_at_, messages_.empty() ? UINT64_MAX : heartbeat_at_);
}

void Outgoing::acknowledged(const Position& position, uint64_t now) {
    if (!(acked_ < position)) return;
    while (!messages_.empty() && acked_.serial != position.serial && messages_.front().sent == messages_.front().fragments) {
        OutgoingMessage& message = messages_.front();
        acked_fragments_ += message.fragments - acked_.fragment;
        acked_ = {acked_.serial + 1, 0};
        ++first_;
        --next_;
        if (message.send)
            message.send->complete();
        else
            kept_ -= message.bytes;
        messages_.pop_front();
    }
    if (!messages_.empty()) {
        // The position is beyond a message of which only a part was sent, because the last receiver has ended. The window must open for the
        // rest.
        const uint64_t covered = acked_.serial == position.serial ? position.fragment : UINT64_MAX;
        const uint64_t to = std::min(covered, messages_.front().sent);
        if (to > acked_.fragment) {
            acked_fragments_ += to - acked_.fragment;
            acked_.fragment = to;
        }
    }
    if (acked_fragments_ >= asked_ && asked_at_ > 0) answer_ns_ = (7 * answer_ns_ + now - std::exchange(asked_at_, 0)) / 8;
    window_ = std::min(window_ + kWiden, kMostWindow);
    heartbeats_ = 0;
    calm_ = std::min(calm_ + calm_ / 4, kCalmHeartbeatNs);
    pause_ = calm();
    heartbeat_at_ = now + pause_;
}

void Outgoing::missed(const Missing& missing, uint16_t who, uint64_t now) {
    OutgoingMessage* const message = find(missing.serial);
    if (!message) return;
    for (uint32_t bit = 0; bit < 64; ++bit) {
        if (!(missing.mask >> bit & 1)) continue;
        const uint64_t fragment = uint64_t{missing.fragment} + bit;
        if (fragment >= message->sent) break;
        const Wish wish{missing.serial, static_cast<uint32_t>(fragment), who, missing.urgent};
        if (is_on_its_way(*message, wish, now)) continue;
        const auto same = std::find_if(requests_.begin(), requests_.end(), [&](const Wish& other) {
            return other.serial == wish.serial && other.fragment == fragment &&
                   (other.member == who || !(other.urgent || wish.urgent));
        });
        if (same == requests_.end())
            requests_.push_back(wish);
        else if (same->member != who)
            same->member = Note::kSeveral;
    }
    requests_at_ = std::min(requests_at_, now + kGatherNs);
    calm_ = kHeartbeatNs;
    if (now - shrunk_at_ > 4 * kHeartbeatNs) {
        window_ = std::max(kLeastWindow, window_ / 2);
        shrunk_at_ = now;
    }
}

}  // namespace starling::multicast
