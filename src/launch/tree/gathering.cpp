// Gathering: a daemon waits for the hosts below it, and sends the pieces of all of them up at once.
//
// Correctness does not depend on the waiting: a host that is slow, moved or dead delays the others by at most kGatheringPatience. Pieces are
// acknowledged only when the root has them, so none is lost if a daemon dies with pieces in its memory. A piece may arrive twice then: the
// root handles the second as the first.
#include "launch/tree/gathering.h"

#include <algorithm>

#include "launch/tree/implementation.h"

namespace starling::launch {

using Implementation = Tree::Implementation;

namespace {

/// Time for which a daemon waits for pieces of other hosts. Longer than the processes of one job usually take to start or end one after the
/// other; too short for users to notice.
constexpr std::chrono::milliseconds kGatheringPatience{50};
/// Waiting time for eager topics: only pieces that arrive at about the same time are combined.
constexpr std::chrono::milliseconds kEagerPatience{2};
/// Time for which a daemon remembers, after the last piece, which hosts have contributed. With this memory the last hosts need not wait.
constexpr std::chrono::minutes kMemory{1};
/// If more bytes than this are held, they are sent up at once.
constexpr size_t kMostHeld = 4u << 20;

}  // namespace

std::string encode(const GatheredPayload& message) {
    Writer out;
    out.string(message.topic).number(static_cast<uint8_t>(message.eager));
    message.contributors.encode(out);
    out.number(static_cast<uint32_t>(message.parts.size()));
    for (const GatheredPiece& piece : message.parts) {
        piece.hosts.encode(out);
        out.string(piece.bytes);
    }
    return out.take();
}

bool decode(std::string_view bytes, GatheredPayload& out) {
    Reader in(bytes);
    out.topic = in.string();
    const auto eager = in.number<uint8_t>();
    out.eager = eager == 1;
    if (eager > 1 || !HostSet::decode(in, out.contributors)) return false;
    out.parts.clear();
    out.parts.resize(in.count(8));
    for (GatheredPiece& piece : out.parts) {
        if (!HostSet::decode(in, piece.hosts) || piece.hosts.empty()) return false;
        piece.bytes = in.string();
    }
    return in.done() && !out.parts.empty();
}

void TopicGathering::add(const GatheredPayload& news, DeliveryReceipt receipt) {
    contributors_.add(news.contributors);
    eager_ = eager_ || news.eager;
    for (const GatheredPiece& piece : news.parts) {
        HostSet hosts = piece.hosts;
        hosts.remove(held_);
        if (hosts.empty()) continue;
        held_.add(hosts);
        heard_.add(hosts);
        // Most topics have either one kind of piece or a different one per host: comparing with the last few suffices.
        constexpr size_t kLooked = 4;
        const size_t first = parts_.size() - std::min(parts_.size(), kLooked);
        const auto same = std::find_if(parts_.begin() + static_cast<ptrdiff_t>(first), parts_.end(),
                                       [&](const GatheredPart& other) { return other.bytes == piece.bytes; });
        if (same != parts_.end()) {
            same->hosts.add(hosts);
        } else {
            bytes_ += piece.bytes.size();
            parts_.push_back({std::move(hosts), std::string(piece.bytes)});
        }
    }
    if (receipt.use_count() > 0) receipts_.push_back(std::move(receipt));  // the pointer of a receipt is always null
}

bool TopicGathering::complete_for(const HostSet& hosts) const {
    HostSet missing = contributors_.intersection(hosts);
    missing.remove(heard_);
    return missing.empty();
}

std::string TopicGathering::receive(std::string_view topic, DeliveryReceipt& receipt) {
    GatheredPayload message{topic, contributors_, eager_, {}};
    for (const GatheredPart& piece : parts_) message.parts.push_back({piece.hosts, piece.bytes});
    std::string bytes = encode(message);
    receipt = std::make_shared<std::vector<DeliveryReceipt>>(std::move(receipts_));
    receipts_.clear();
    parts_.clear();
    held_ = {};
    bytes_ = 0;
    taken_ = true;
    return bytes;
}

void Implementation::gather(std::string_view topic, std::string_view piece, const HostSet& contributors, Urgency urgency,
                            bool eager) {
    if (orphan) return;
    const GatheredPayload own{topic, contributors, eager, {{HostSet::one(self.host), piece}}};
    if (!is_root()) return gather_in(own, urgency, nullptr);
    defer([this, bytes = encode(own)] { deliver_gathered(bytes); });
}

void Implementation::gather_in(const GatheredPayload& news, Urgency urgency, DeliveryReceipt receipt) {
    auto& topics = gatherings[static_cast<size_t>(urgency)];
    const auto it = topics.try_emplace(std::string(news.topic)).first;
    TopicGathering& gathering = it->second;
    gathering.add(news, std::move(receipt));
    gathering.last_news = EventLoop::Clock::now();
    if (ending || gathering.in_a_hurry() || gathering.bytes() > kMostHeld || gathering.complete_for(all_here()))
        return gather_up(it->first, urgency);
    if (gathering.timer != 0) return;
    const auto patience = gathering.is_eager() ? kEagerPatience : kGatheringPatience;
    gathering.timer = loop.after(patience, [this, topic = it->first, urgency] { gather_up(topic, urgency); });
}

HostSet Implementation::all_here() const {
    HostSet here = HostSet::one(self.host);
    for (const Branch& branch : branches) here.add(branch.members);
    return here;
}

// `topic` may refer to the key of the entry, which may be erased at the end.
void Implementation::gather_up(const std::string& topic, Urgency urgency) {
    auto& topics = gatherings[static_cast<size_t>(urgency)];
    const auto it = topics.find(topic);
    if (it == topics.end()) return;
    TopicGathering& gathering = it->second;
    if (gathering.timer != 0) loop.cancel(std::exchange(gathering.timer, 0));
    if (gathering.empty()) return;
    auto content = std::make_shared<Content>();
    DeliveryReceipt receipt;
    content->storage = gathering.receive(it->first, receipt);
    content->payload = content->storage;
    content->origin = self.host;
    content->urgency = urgency;
    content->gathered = true;
    content->number = ++numbers[static_cast<size_t>(urgency)];
    if (gathering.complete_for(all_here())) topics.erase(it);
    push(uplink, {std::move(content), HostSet::one(kRootHost), std::move(receipt)});
}

// Sends up all pieces without waiting any longer.
void Implementation::gather_up_everything() {
    for (const Urgency urgency : {Urgency::control, Urgency::bulk}) {
        std::vector<std::string> all;
        for (const auto& [topic, gathering] : gatherings[static_cast<size_t>(urgency)]) all.push_back(topic);
        for (const std::string& topic : all) gather_up(topic, urgency);
    }
}

void Implementation::forget_old_gatherings(EventLoop::Clock::time_point now) {
    for (auto& topics : gatherings) {
        std::erase_if(topics,
                      [now](const auto& entry) { return entry.second.empty() && now - entry.second.last_news > kMemory; });
    }
}

void Implementation::drop_gatherings() {
    for (auto& topics : gatherings) {
        for (auto& [topic, gathering] : topics) {
            if (gathering.timer != 0) loop.cancel(gathering.timer);
        }
        // Dropping a receipt may call this function again, so the map is emptied before.
        const auto gone = std::exchange(topics, {});
    }
}

void Implementation::deliver_gathered(std::string_view bytes) {
    GatheredPayload message;
    if (handlers.on_gathered && decode(bytes, message)) handlers.on_gathered(message.topic, message.parts);
}

}  // namespace starling::launch
