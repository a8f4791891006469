// Routes messages that this daemon sends, receives or passes on.
#include "base/error.h"
#include "launch/tree/implementation.h"

namespace starling::launch {

using Implementation = Tree::Implementation;

// Copies the caller's data into the layout of a received message.
static std::shared_ptr<Content> make_content(std::string payload,
                                             const std::vector<std::pair<TreeHostId, std::string>>& parts) {
    auto content = std::make_shared<Content>();
    const size_t shared = payload.size();
    content->storage = std::move(payload);
    size_t total = shared;
    for (const auto& part : parts) total += part.second.size();
    content->storage.reserve(total);
    for (const auto& part : parts) content->storage += part.second;
    const std::string_view all(content->storage);
    content->payload = all.substr(0, shared);
    size_t at = shared;
    for (const auto& [host, part] : parts) {
        content->parts.emplace_back(host, all.substr(at, part.size()));
        at += part.size();
    }
    return content;
}

void Implementation::originate(std::string payload, std::vector<std::pair<TreeHostId, std::string>> parts, HostSet to,
                               Urgency urgency, bool internal, std::function<void()> arrived) {
    to.remove(self.host);
    if (to.empty() && arrived) defer(std::move(arrived));
    if (to.empty() || orphan) return;
    const auto content = make_content(std::move(payload), parts);
    if (content->storage.size() > kMaxTreePayload) {
        panic("a message of %zu bytes to another host's daemon; at most %zu can be sent", content->storage.size(),
              kMaxTreePayload);
    }
    content->origin = self.host;
    content->urgency = urgency;
    content->internal = internal;
    content->number = ++numbers[static_cast<size_t>(urgency)];
    DeliveryReceipt receipt;
    const size_t bytes = urgency == Urgency::bulk ? content->storage.size() : 0;
    backlog += bytes;
    if (bytes > 0 || arrived) {
        receipt = DeliveryReceipt(nullptr, [this, bytes, arrived = std::move(arrived)](void*) {
            backlog -= bytes;
            if (arrived && !destroying) defer(arrived);
        });
    }
    route(content, std::move(to), receipt, nullptr);
}

void Implementation::push(Neighbour& to, TreeOutbox::OutboxMessage message) {
    to.outbox.push(std::move(message));
    if (to.connection) to.connection->pump();
}

void Implementation::route(const std::shared_ptr<const Content>& content, HostSet to, const DeliveryReceipt& receipt,
                           const Neighbour* from) {
    if (to.contains(self.host)) {
        to.remove(self.host);
        deliver(content, receipt);
    }
    for (Branch& branch : branches) {
        if (to.empty()) return;
        HostSet theirs = to.intersection(branch.members);
        if (theirs.empty()) continue;
        to.remove(theirs);
        push(branch, {content, std::move(theirs), receipt});
    }
    // A message from above may list hosts that are no longer below this daemon; the daemon that adopted them has sent it to them. At the
    // root, the remaining hosts are lost.
    if (!to.empty() && !is_root() && !orphan && from != &uplink) push(uplink, {content, std::move(to), receipt});
}

void Implementation::deliver(const std::shared_ptr<const Content>& content, const DeliveryReceipt& receipt) {
    // Skip the duplicate check for gathered messages: they may arrive late if a daemon died on their way, and duplicates are harmless.
    if (!content->gathered) {
        uint64_t& last = seen[static_cast<size_t>(content->urgency)][content->origin];
        if (content->number <= last) return;  // The message arrived before, on a connection that has broken since.
        last = content->number;
    }
    if (content->internal) {
        Report report;
        if (!is_root()) {
            begin_end();  // An order to end: the root sends no other internal message.
        } else if (decode(content->payload, report)) {
            on_report(report);
        }
        return;
    }
    if (content->urgency == Urgency::bulk && (hold_bulk || !held.empty())) {
        held.emplace_back(content, receipt);
        return;
    }
    deliver(*content);
}

void Implementation::deliver(const Content& content) {
    if (content.gathered) return deliver_gathered(content.payload);
    if (!handlers.on_message) return;
    TreeMessage message{content.origin, content.payload, {}};
    for (const auto& [host, part] : content.parts) {
        if (host == self.host) message.own = part;
    }
    handlers.on_message(message);
}

void Implementation::release_bulk() {
    while (!hold_bulk && !held.empty()) {
        const auto [content, receipt] = std::move(held.front());
        held.pop_front();
        deliver(*content);
    }
}

void Implementation::on_message(Neighbour& from, std::string& body) {
    auto content = std::make_shared<Content>();
    MessageHead head;
    if (!decode_message(std::move(body), head, *content)) {
        from.connection->lose("it sent an invalid message");
        return;
    }
    const uint64_t serial = from.serial, number = head.edge_number;
    const Urgency urgency = content->urgency;
    const DeliveryReceipt receipt(nullptr, [this, serial, urgency, number](void*) { arrived(serial, urgency, number); });
    // Each hop that passes a report up to the root first removes the parts that it knows to be outdated.
    if (content->internal && &from != &uplink && !pass_report(static_cast<Branch&>(from), *content)) return;
    if (content->gathered && !is_root()) {
        GatheredPayload news;
        if (&from == &uplink || !decode(content->payload, news))
            return from.connection->lose("it sent an invalid gathered message");
        return gather_in(news, urgency, receipt);
    }
    route(content, std::move(head.to), receipt, &from);
}

void Implementation::on_done(Neighbour& from, const std::string& body) {
    DoneRanges done;
    bool good = decode(body, done);
    for (const auto& [first, last] : done.ranges) good = good && from.outbox.done(done.urgency, first, last);
    if (!good) return from.connection->lose("it acknowledged messages that were never sent to it");
    if (from.connection) from.connection->pump();  // the acknowledgement may have opened the window for bulk messages
}

// Acknowledges a message: all its receivers have it, or are lost.
void Implementation::arrived(uint64_t serial, Urgency urgency, uint64_t number) {
    if (destroying) return;
    const auto found = by_serial.find(serial);
    if (found == by_serial.end()) return;
    auto& ranges = found->second->done[static_cast<size_t>(urgency)].ranges;
    if (!ranges.empty() && ranges.back().second + 1 == number) {
        ranges.back().second = number;
    } else {
        ranges.emplace_back(number, number);
    }
    found->second->connection->pump();
}

bool Implementation::pull(Neighbour& to, OutgoingFrame& out) {
    for (DoneRanges& done : to.done) {
        if (done.ranges.empty()) continue;
        out.kind = TreeFrameKind::done;
        out.head = encode(done);
        done.ranges.clear();
        return true;
    }
    MessageHead head;
    out.content = to.outbox.next(head);
    if (!out.content) return false;
    out.kind = TreeFrameKind::message;
    out.head = encode_head(head, *out.content);
    out.tail = encode_tail(head, *out.content);
    return true;
}

void Implementation::connect(Neighbour& neighbour, std::unique_ptr<TreeConnection> connection,
                             std::function<void(TreeFrameKind, std::string&)> on_frame,
                             std::function<void(const std::string&)> on_close) {
    disconnect(neighbour);
    neighbour.serial = ++last_serial;
    by_serial[neighbour.serial] = &neighbour;
    neighbour.outbox.restart();
    neighbour.connection = std::move(connection);
    neighbour.connection->set_handlers({{}, std::move(on_frame), std::move(on_close), [this, &neighbour](OutgoingFrame& out) {
                                            return pull(neighbour, out);
                                        }});
    neighbour.connection->pump();
}

void Implementation::disconnect(Neighbour& neighbour) {
    if (!neighbour.connection) return;
    by_serial.erase(neighbour.serial);
    for (DoneRanges& done : neighbour.done) done.ranges.clear();
    bury(std::move(neighbour.connection));
}

}  // namespace starling::launch
