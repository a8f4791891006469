#include "launch/tree/outbox.h"

namespace starling::launch {

namespace {

size_t weight(const Content& content) { return content.urgency == Urgency::bulk ? content.storage.size() : 0; }

}  // namespace

void TreeOutbox::push(OutboxMessage message) {
    PriorityLane& lane = this->lane(message.content->urgency);
    lane.entries.push_back({std::move(message)});
}

std::shared_ptr<const Content> TreeOutbox::next(MessageHead& head) {
    for (PriorityLane& lane : lanes_) {
        const bool full = &lane == &lanes_[1] && bulk_in_flight_ >= kBulkWindow;
        while (!full && lane.next < lane.entries.size()) {
            QueuedMessage& entry = lane.entries[lane.next];
            const uint64_t number = lane.first + lane.next++;
            if (entry.done) continue;
            entry.sent = true;
            bulk_in_flight_ += weight(*entry.message.content);
            head = {number, entry.message.to};
            return entry.message.content;
        }
    }
    return nullptr;
}

void TreeOutbox::finish(PriorityLane& lane, QueuedMessage& entry) {
    if (entry.done) return;
    entry.done = true;
    if (entry.sent) bulk_in_flight_ -= weight(*entry.message.content);
    // Dropping a receipt may call this outbox again, so drop it after the change.
    const OutboxMessage gone = std::move(entry.message);
    trim(lane);
}

void TreeOutbox::trim(PriorityLane& lane) {
    while (!lane.entries.empty() && lane.entries.front().done) {
        lane.entries.pop_front();
        ++lane.first;
        if (lane.next > 0) --lane.next;
    }
}

bool TreeOutbox::done(Urgency urgency, uint64_t first, uint64_t last) {
    PriorityLane& lane = this->lane(urgency);
    if (first > last || last >= lane.first + lane.next) return false;
    // Iterate backwards: finishing the first entry removes it, which shifts the others.
    for (uint64_t n = last + 1; n > first && n > lane.first; --n)
        finish(lane, lane.entries[static_cast<size_t>(n - 1 - lane.first)]);
    return true;
}

void TreeOutbox::restart() {
    for (PriorityLane& lane : lanes_) {
        lane.next = 0;
        for (QueuedMessage& entry : lane.entries) entry.sent = false;
    }
    bulk_in_flight_ = 0;
}

std::vector<TreeOutbox::OutboxMessage> TreeOutbox::extract(const HostSet& hosts) {
    std::vector<OutboxMessage> taken;
    for (PriorityLane& lane : lanes_) {
        for (QueuedMessage& entry : lane.entries) {
            if (entry.done) continue;
            HostSet theirs = entry.message.to.intersection(hosts);
            if (theirs.empty()) continue;
            entry.message.to.remove(theirs);
            taken.push_back({entry.message.content, std::move(theirs), entry.message.receipt});
            if (!entry.message.to.empty()) continue;
            entry.done = true;
            if (entry.sent) bulk_in_flight_ -= weight(*entry.message.content);
            entry.message.receipt.reset();  // drop this copy: `taken` has another, which keeps the receipt alive
        }
        trim(lane);
    }
    return taken;
}

}  // namespace starling::launch
