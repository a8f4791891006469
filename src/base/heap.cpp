#include "base/heap.h"

#include <algorithm>
#include <iterator>

namespace starling {

namespace {

uint64_t round_up(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

}  // namespace

void Heap::add_gap(uint64_t offset, uint64_t bytes) {
    if (bytes == 0) return;
    auto next = gaps_.lower_bound(offset);
    if (next != gaps_.end() && offset + bytes == next->first) {
        bytes += next->second;
        remove_gap(next++);
    }
    if (next != gaps_.begin()) {
        const auto before = std::prev(next);
        if (before->first + before->second == offset) {
            offset = before->first;
            bytes += before->second;
            remove_gap(before);
        }
    }
    if (offset + bytes == top_) {
        top_ = offset;
        return;
    }
    gaps_.emplace(offset, bytes);
    by_size_.emplace(bytes, offset);
}

void Heap::remove_gap(std::map<uint64_t, uint64_t>::iterator gap) {
    by_size_.erase({gap->second, gap->first});
    gaps_.erase(gap);
}

uint64_t Heap::allocate(uint64_t bytes, uint64_t alignment) {
    alignment = std::max(alignment, kAlignment);
    if (bytes > limit_) return kNone;
    const uint64_t room = round_up(bytes, kAlignment);
    for (auto it = by_size_.lower_bound({room, 0}); it != by_size_.end(); ++it) {
        const auto [size, begin] = *it;
        const uint64_t offset = round_up(begin, alignment);
        if (offset - begin > size - room) continue;
        remove_gap(gaps_.find(begin));
        blocks_.emplace(offset, HeapBlock{room, bytes});
        add_gap(begin, offset - begin);
        add_gap(offset + room, begin + size - offset - room);
        return offset;
    }
    const uint64_t begin = top_, offset = round_up(begin, alignment);
    if (offset > limit_ || room > limit_ - offset) return kNone;
    top_ = offset + room;
    high_ = std::max(high_, top_);
    blocks_.emplace(offset, HeapBlock{room, bytes});
    add_gap(begin, offset - begin);
    return offset;
}

bool Heap::resize(uint64_t offset, uint64_t bytes) {
    const auto block = blocks_.find(offset);
    if (block == blocks_.end() || bytes > limit_) return false;
    const uint64_t room = round_up(bytes, kAlignment), had = block->second.room, end = offset + had;
    if (room < had) {
        block->second = {room, bytes};
        add_gap(offset + room, had - room);
        return true;
    }
    const uint64_t more = room - had;
    if (more > 0 && end == top_) {
        if (more > limit_ - end) return false;
        top_ += more;
        high_ = std::max(high_, top_);
    } else if (more > 0) {
        const auto gap = gaps_.find(end);
        if (gap == gaps_.end() || gap->second < more) return false;
        const uint64_t left = gap->second - more;
        remove_gap(gap);
        add_gap(end + more, left);
    }
    block->second = {room, bytes};
    return true;
}

bool Heap::free(uint64_t offset) {
    const auto block = blocks_.find(offset);
    if (block == blocks_.end()) return false;
    const uint64_t room = block->second.room;
    blocks_.erase(block);
    add_gap(offset, room);
    return true;
}

uint64_t Heap::bytes_at(uint64_t offset) const {
    const auto block = blocks_.find(offset);
    return block == blocks_.end() ? 0 : block->second.bytes;
}

bool Heap::holds(uint64_t offset, uint64_t bytes) const {
    auto block = blocks_.upper_bound(offset);
    if (block == blocks_.begin()) return false;
    --block;
    const uint64_t into = offset - block->first;
    return into <= block->second.bytes && bytes <= block->second.bytes - into;
}

}  // namespace starling
