#include "transport/loopback/queue.h"

namespace starling::loopback {

namespace {
constexpr uint32_t size_of(uint32_t bytes) { return static_cast<uint32_t>(sizeof(LoopbackPacket)) + ((bytes + 7) & ~7u); }
}  // namespace

LoopbackPacket* LoopbackQueue::reserve(uint32_t bytes) {
    if (!memory_) memory_ = std::make_unique_for_overwrite<std::byte[]>(kBytes);
    const uint32_t size = size_of(bytes);
    const bool wrapped = count_ > 0 && tail_ <= head_;
    if (size <= (wrapped ? head_ : kBytes) - tail_) return &at(tail_);
    return !wrapped && size <= head_ ? &at(0) : nullptr;
}

void LoopbackQueue::push(LoopbackPacket& entry, uint32_t bytes) {
    if (&entry != &at(tail_)) {
        end_ = tail_;
        tail_ = 0;
    }
    entry.bytes = bytes;
    entry.size = size_of(bytes);
    tail_ += entry.size;
    ++count_;
}

void LoopbackQueue::pop() {
    head_ += front().size;
    if (head_ == end_) {
        head_ = 0;
        end_ = kBytes;
    }
    if (--count_ == 0) head_ = tail_ = 0, end_ = kBytes;
}

}  // namespace starling::loopback
