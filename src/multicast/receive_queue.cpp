#include "multicast/receive_queue.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace starling::multicast {

ArrivingMessage::ArrivingMessage(const MessageLabel& its_label, uint64_t its_bytes, uint32_t its_piece,
                                 std::shared_ptr<uint64_t> kept)
    : label(its_label),
      bytes(its_bytes),
      fragment_bytes(its_piece),
      fragments_(cut().count()),
      total_(std::move(kept)) {}

void ArrivingMessage::charge(uint64_t count) {
    *total_ += count - charged_;
    charged_ = count;
}

void ArrivingMessage::discard_rest() {
    receive_ = nullptr;
    withdrawn_ = true;
    stored_bytes_ = {};
    charge(0);
}

void ArrivingMessage::put(uint64_t at, const std::byte* data, uint64_t count) {
    if (receive_) {
        if (count > 0 && at < receive_->bytes) std::memcpy(receive_->memory + at, data, std::min(count, receive_->bytes - at));
    } else if (!withdrawn_) {
        if (stored_bytes_.size() < at + count) stored_bytes_.resize(at + count);
        if (count > 0) std::memcpy(stored_bytes_.data() + at, data, count);
        charge(kLeast + stored_bytes_.size());
    }
}

void ArrivingMessage::handle(uint64_t fragment, const std::byte* data, uint32_t count) {
    put(cut().offset(fragment), data, count);
    if (got_.size() <= fragment) got_.resize(fragment + 1);
    got_[fragment] = true;
    ++have_;
    while (first_missing_ < got_.size() && got_[first_missing_]) ++first_missing_;
}

std::shared_ptr<ArrivingMessage> ReceiveQueue::arrive(const MessageLabel& label, uint64_t bytes, uint32_t piece,
                                                      const std::shared_ptr<uint64_t>& kept) {
    const auto there = arrivals_.find(label);
    // The message is already arriving: its sender has begun a new stream and repeats it.
    if (there != arrivals_.end()) return there->second;
    const auto made = std::make_shared<ArrivingMessage>(label, bytes, piece, kept);
    arrivals_.emplace(label, made);
    if (const auto posted = posted_.find(label); posted != posted_.end()) {
        MulticastReceive& receive = *posted->second;
        posted_.erase(posted);
        deliver(*made, receive);
    } else if (refused_.erase(label) > 0 || closed_.contains(label.context)) {
        made->discard_rest();
    }
    return made;
}

void ReceiveQueue::deliver(ArrivingMessage& arrival, MulticastReceive& receive) {
    arrival.receive_ = &receive;
    const uint64_t count = std::min<uint64_t>(arrival.stored_bytes_.size(), receive.bytes);
    if (count > 0) std::memcpy(receive.memory, arrival.stored_bytes_.data(), count);
    arrival.stored_bytes_ = {};
    arrival.charge(0);
}

void ReceiveQueue::arrived(ArrivingMessage& arrival) {
    if (!arrival.complete() || (!arrival.receive_ && !arrival.withdrawn_)) return;
    finish(arrival);
}

void ReceiveQueue::finish(ArrivingMessage& arrival) {
    MulticastReceive* const receive = arrival.receive_;
    const uint64_t bytes = arrival.bytes;
    const auto keep = arrivals_.extract(arrival.label);  // Keeps the message alive until the function returns.
    if (!receive) return;
    arrival.discard_rest();
    receive->outcome.bytes = bytes;
    if (bytes > receive->bytes) {
        receive->outcome.error =
            starling::fail(MPI_ERR_TRUNCATE, "a multicast message of %llu bytes is too long for a buffer of %llu bytes",
                           static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(receive->bytes));
        progress::save_failure(*receive);
    }
    receive->complete();
}

void ReceiveQueue::post(MulticastReceive& receive, const MessageLabel& label) {
    const auto there = arrivals_.find(label);
    if (there == arrivals_.end()) {
        posted_.emplace(label, &receive);
        return;
    }
    deliver(*there->second, receive);
    arrived(*there->second);
}

bool ReceiveQueue::withdraw(MulticastReceive& receive, const MessageLabel& label) {
    if (receive.done) return false;
    if (posted_.erase(label) > 0) return true;
    const auto there = arrivals_.find(label);
    if (there == arrivals_.end() || there->second->receive_ != &receive) return false;
    there->second->discard_rest();
    return true;
}

void ReceiveQueue::refuse(MulticastReceive& receive, const MessageLabel& label) {
    const bool expected = posted_.contains(label);
    if (withdraw(receive, label) && expected) refused_.insert(label);
}

void ReceiveQueue::forget(uint64_t context) {
    if (closed_.insert(context).second) closed_order_.push_back(context);
    if (closed_order_.size() > kMostClosed) {
        closed_.erase(closed_order_.front());
        closed_order_.pop_front();
    }
    std::erase_if(refused_, [context](const MessageLabel& label) { return label.context == context; });
    for (auto at = arrivals_.begin(); at != arrivals_.end();) {
        const bool of_it = at->first.context == context;
        if (of_it) at->second->discard_rest();
        at = of_it ? arrivals_.erase(at) : std::next(at);
    }
}

void ReceiveQueue::fail(uint64_t job, uint32_t rank) {
    std::vector<MulticastReceive*> lost;
    for (auto at = posted_.begin(); at != posted_.end();) {
        const bool of_it = at->first.job == job && at->first.rank == rank;
        if (of_it) lost.push_back(at->second);
        at = of_it ? posted_.erase(at) : std::next(at);
    }
    for (auto at = arrivals_.begin(); at != arrivals_.end();) {
        ArrivingMessage& arrival = *at->second;
        const bool of_it = at->first.job == job && at->first.rank == rank && !arrival.complete();
        if (of_it && arrival.receive_) lost.push_back(arrival.receive_);
        if (of_it) arrival.discard_rest();
        at = of_it ? arrivals_.erase(at) : std::next(at);
    }
    std::erase_if(refused_, [&](const MessageLabel& label) { return label.job == job && label.rank == rank; });
    for (MulticastReceive* receive : lost) {
        receive->outcome.error =
            starling::fail(MPI_ERR_PROC_ABORTED, "rank %u ended before its multicast message was complete", rank);
        progress::save_failure(*receive);
        receive->complete();
    }
}

}  // namespace starling::multicast
