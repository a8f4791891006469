#include "multicast/incoming.h"

#include <algorithm>
#include <iterator>

namespace starling::multicast {

Incoming::IncomingMessage* Incoming::find(uint32_t serial) {
    const uint32_t at = serial - first_;
    return at < messages_.size() ? &messages_[at] : nullptr;
}

/// Adds entries for all messages up to `serial`, and schedules requests for those before it. Returns false if `serial` is too far ahead.
bool Incoming::reach(uint32_t serial, uint64_t now) {
    const auto ahead = static_cast<int32_t>(serial - first_);
    if (ahead < 0) return true;
    if (static_cast<uint32_t>(ahead) >= kMostAhead) return false;
    while (messages_.size() <= static_cast<uint32_t>(ahead)) {
        messages_.emplace_back();
        if (first_ + messages_.size() - 1 != serial) miss(messages_.back(), now + kReorderNs);
    }
    return true;
}

void Incoming::miss(IncomingMessage& message, uint64_t at) {
    if (!message.misses()) return;
    message.request_at = std::min(message.request_at, at);
    deadline_ = std::min(deadline_, message.request_at);
}

bool Incoming::IncomingMessage::misses() const {
    if (!arrival) return requested_to == 0;
    if (arrival->have() == seen) return false;
    for (uint64_t at = std::max(requested_to, arrival->first_missing()); at < seen; ++at)
        if (!arrival->has(at)) return true;
    return false;
}

bool Incoming::IncomingMessage::waits() const {
    return requested_to > 0 && (!arrival || arrival->first_missing() < std::min(requested_to, seen));
}

bool Incoming::handle(const GroupDatagram& datagram, uint64_t now) {
    const GroupDatagramHeader& head = datagram.head;
    if (head.epoch < epoch_) return false;
    if (head.epoch > epoch_) {
        epoch_ = head.epoch;
        first_ = head.floor;
        messages_.clear();
        wanted_ = {first_, 0};
        deadline_ = UINT64_MAX;
    }
    if (const auto passed = static_cast<int32_t>(head.floor - first_); passed > 0) {
        left_behind_ = true;
        first_ = head.floor;
        messages_.erase(messages_.begin(), messages_.begin() + std::min<ptrdiff_t>(passed, std::ssize(messages_)));
    }
    if (head.word == Word::heartbeat) {
        expect(head.serial, head.fragment, now);
        return true;
    }
    if (!reach(head.serial, now)) return false;
    IncomingMessage* const message = find(head.serial);
    if (!message || message->done) {
        ++duplicates_;
        if (head.flags & GroupDatagramHeader::kAckNow)
            wanted_ = std::max(wanted_, Position{head.serial, head.fragment + uint64_t{1}});
        return true;
    }
    handle_data(datagram, *message, now);
    if (head.flags & GroupDatagramHeader::kAckNow)
        wanted_ = std::max(wanted_, Position{head.serial, head.fragment + uint64_t{1}});
    return true;
}

/// Returns whether a datagram agrees with the message that arrives under its serial.
bool Incoming::is_of(const ArrivingMessage& arrival, const GroupDatagram& datagram) {
    const GroupDatagramHeader& head = datagram.head;
    if (arrival.fragment_bytes != head.fragment_bytes) return false;
    if (head.is_described()) return arrival.bytes == head.bytes;
    return head.fragment < arrival.fragments() && datagram.bytes == arrival.cut().length(head.fragment);
}

void Incoming::handle_data(const GroupDatagram& datagram, IncomingMessage& message, uint64_t now) {
    const GroupDatagramHeader& head = datagram.head;
    if (!message.arrival) {
        // The fragment cannot be placed without the message's description. It is requested again once a description has arrived.
        if (!head.is_described()) return miss(message, now + kReorderNs);
        message.arrival = desk_.arrive({job_, head.context, head.call, rank_}, head.bytes, head.fragment_bytes, kept_);
        // Request all fragments again, because the message's length was unknown at the first request.
        message.requested_to = 0;
        message.repeat_at = UINT64_MAX;
    }
    ArrivingMessage& arrival = *message.arrival;
    if (!is_of(arrival, datagram) || !arrival.is_near(head.fragment)) return;
    message.seen = std::max<uint64_t>(message.seen, head.fragment + uint64_t{1});
    if (arrival.has(head.fragment)) {
        ++duplicates_;
    } else if (arrival.takes(head.fragment)) {
        arrival.handle(head.fragment, datagram.body, datagram.bytes);
        note_progress(message, head.fragment, now);
    }
    if (arrival.complete()) {
        message.done = true;
        desk_.arrived(arrival);
        settle();
    } else {
        miss(message, now + kReorderNs);
    }
}

/// Records that a fragment has arrived. If it was requested, the next request allows time for the rest.
void Incoming::note_progress(IncomingMessage& message, uint64_t fragment, uint64_t now) {
    if (!message.misses()) message.request_at = UINT64_MAX;
    if (!message.waits()) {
        message.repeat_at = UINT64_MAX;
        message.pause = kAskAgainNs;
        message.asked = 0;
    } else if (fragment < message.requested_to) {
        message.repeat_at = std::max(message.repeat_at, now + message.pause);
    }
}

void Incoming::expect(uint32_t serial, uint64_t fragment, uint64_t now) {
    const auto ahead = static_cast<int32_t>(serial - first_);
    if (ahead < 0 || (ahead > 0 && !reach(serial - 1, now))) return;
    if (IncomingMessage* const message = find(first_); message && message->arrival)
        message->seen = std::max(message->seen, std::min(fragment, message->arrival->fragments()));
    for (uint32_t i = 0; i < static_cast<uint32_t>(ahead) && i < messages_.size(); ++i) {
        IncomingMessage& message = messages_[i];
        if (message.done) continue;
        // All fragments of the messages after the first one count as sent; if that is wrong, the sender corrects it.
        if (i > 0 && message.arrival) message.seen = message.arrival->fragments();
        miss(message, now);
    }
    // If only the beginning of the message has been sent, the sender wants an acknowledgement of that.
    const IncomingMessage* const begun = ahead == 1 && fragment > 0 ? find(first_) : nullptr;
    const bool partly = begun && begun->arrival && fragment < begun->arrival->fragments();
    wanted_ = std::max(wanted_, partly ? Position{first_, fragment} : Position{serial, 0});
}

void Incoming::settle() {
    while (!messages_.empty() && messages_.front().done) {
        messages_.pop_front();
        ++first_;
    }
}

Position Incoming::position() const {
    if (messages_.empty() || !messages_.front().arrival) return {first_, 0};
    return {first_, messages_.front().arrival->first_missing()};
}

}  // namespace starling::multicast
