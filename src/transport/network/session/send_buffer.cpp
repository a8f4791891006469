#include "transport/network/session/send_buffer.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace starling::network {

SlabPool::~SlabPool() {
    for (Slab*& list : free_)
        while (Slab* slab = list) {
            list = slab->next;
            ::operator delete(slab);
        }
}

Slab* SlabPool::allocate(uint32_t bytes, bool small) {
    const int kind = small && bytes <= kSmall ? 0 : 1;
    Slab* slab = free_[kind];
    if (slab) {
        free_[kind] = slab->next;
        --count_[kind];
    } else {
        const uint32_t capacity = kind == 0 ? kSmall : kLarge;
        slab = static_cast<Slab*>(::operator new(sizeof(Slab) + capacity));
        slab->capacity = capacity;
    }
    slab->next = nullptr;
    slab->start = 0;
    slab->used = 0;
    return slab;
}

void SlabPool::free_slab(Slab* slab) {
    const int kind = slab->capacity == kSmall ? 0 : 1;
    if (count_[kind] >= kKept[kind]) {
        ::operator delete(slab);
        return;
    }
    slab->next = free_[kind];
    free_[kind] = slab;
    ++count_[kind];
}

packet::Header* SendBuffer::reserve(uint32_t payload) {
    const uint32_t bytes = packet_bytes(payload);
    if (!tail_ || tail_->capacity - tail_->used < bytes) {
        // Add a slab, also if the last one is empty after a reservation without a commit: it is too small for this packet.
        Slab* const slab = pool_.allocate(bytes, stored() < SlabPool::kSmall);
        slab->start = end_;
        (tail_ ? tail_->next : head_) = slab;
        tail_ = slab;
    }
    return reinterpret_cast<packet::Header*>(tail_->data() + tail_->used);
}

void SendBuffer::commit(uint32_t payload) {
    std::byte* const place = tail_->data() + tail_->used;
    auto* const header = reinterpret_cast<packet::Header*>(place);
    header->bytes = payload;
    header->stamp.store(0, std::memory_order_relaxed);
    header->where = packet::PayloadLocation::here;
    const uint32_t bytes = packet_bytes(payload);
    // Zero the padding, so that it does not reveal earlier contents of the memory.
    std::memset(place + sizeof(packet::Header) + payload, 0, bytes - sizeof(packet::Header) - payload);
    tail_->used += bytes;
    end_ += bytes;
}

Slab* SendBuffer::slab_at(uint64_t offset) const {
    Slab* slab = tail_ && offset >= tail_->start ? tail_ : head_;
    while (slab && slab->end() <= offset) slab = slab->next;
    return slab;
}

uint64_t SendBuffer::cut(SequenceRange range, uint32_t room, uint64_t& hint) const {
    Slab* slab = slab_at(range.start);
    const bool useful = slab && hint >= slab->start && hint <= range.start;
    uint64_t at = useful ? hint : slab ? slab->start : range.start;
    uint64_t best = range.start;
    while (slab && at < range.end) {
        if (at >= slab->end()) {
            slab = slab->next;
            continue;
        }
        const auto* const header = reinterpret_cast<const packet::Header*>(slab->data() + (at - slab->start));
        const uint64_t next = at + packet_bytes(header->bytes);
        if (next > range.start + room) break;
        at = next;
        best = std::max(best, at);
    }
    if (best == range.start) best = range.start + room;
    if (at > hint || !useful) hint = at;
    return std::min(best, range.end);
}

int SendBuffer::parts(SequenceRange& range, iovec* out, int most) const {
    int count = 0;
    uint64_t at = range.start;
    for (Slab* slab = slab_at(at); slab && at < range.end && count < most; slab = slab->next) {
        const uint64_t end = std::min(slab->end(), range.end);
        if (end == at) continue;
        out[count++] = {slab->data() + (at - slab->start), end - at};
        at = end;
    }
    range.end = at;
    return count;
}

void SendBuffer::release(uint64_t offset) {
    begin_ = std::max(begin_, std::min(offset, end_));
    while (head_ && head_->end() <= begin_) {
        Slab* const next = head_->next;
        pool_.free_slab(head_);
        head_ = next;
    }
    if (!head_) tail_ = nullptr;
}

void SendBuffer::clear(uint64_t offset) {
    while (Slab* slab = head_) {
        head_ = slab->next;
        pool_.free_slab(slab);
    }
    tail_ = nullptr;
    begin_ = end_ = offset;
}

}  // namespace starling::network
