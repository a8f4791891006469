#include "transport/network/tcp/records.h"

#include <algorithm>
#include <cstring>

namespace starling::network {

namespace {

constexpr size_t kCapacity = kRecordsAtOnce * (kRecordText + kRecordAround);

/// Copies bytes [skip, skip + most) of the parts, as far as they exist; returns the number copied.
size_t gather(const iovec* parts, int count, size_t skip, std::byte* to, size_t most) {
    size_t done = 0;
    for (int i = 0; i < count && done < most; ++i) {
        const size_t left = std::min(skip, parts[i].iov_len);
        const size_t part = std::min(parts[i].iov_len - left, most - done);
        std::memcpy(to + done, static_cast<const std::byte*>(parts[i].iov_base) + left, part);
        skip -= left;
        done += part;
    }
    return done;
}

}  // namespace

size_t RecordSealer::seal(const iovec* parts, int count, size_t skip) {
    if (begin_ < end_) return 0;
    if (!bytes_) bytes_ = std::make_unique_for_overwrite<std::byte[]>(kCapacity);
    begin_ = end_ = 0;
    size_t taken = 0;
    for (size_t i = 0; i < kRecordsAtOnce; ++i) {
        std::byte* const head = bytes_.get() + end_;
        const auto length = static_cast<uint32_t>(gather(parts, count, skip + taken, head + kRecordHead, kRecordText));
        if (length == 0) break;
        std::memcpy(head, &length, sizeof length);
        cipher_.seal(key_, number_++, {head, kRecordHead}, {head + kRecordHead, length}, head + kRecordHead + length);
        taken += length;
        end_ += length + kRecordAround;
    }
    return taken;
}

std::span<std::byte> RecordOpener::room() {
    if (!bytes_) bytes_ = std::make_unique_for_overwrite<std::byte[]>(kCapacity);
    // Move the incomplete record to the front.
    if (begin_ > 0) std::memmove(bytes_.get(), bytes_.get() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
    return {bytes_.get() + end_, kCapacity - end_};
}

RecordOpener::RecordReadResult RecordOpener::next(Bytes& text) {
    if (garbage_) return RecordReadResult::garbage;
    if (end_ - begin_ < kRecordHead) return RecordReadResult::need_more;
    std::byte* const head = bytes_.get() + begin_;
    uint32_t length;
    std::memcpy(&length, head, sizeof length);
    garbage_ = length == 0 || length > kRecordText;
    if (garbage_) return RecordReadResult::garbage;
    if (end_ - begin_ < length + kRecordAround) return RecordReadResult::need_more;
    garbage_ = !cipher_.open(key_, number_++, {head, kRecordHead}, {head + kRecordHead, length}, head + kRecordHead + length);
    if (garbage_) return RecordReadResult::garbage;
    text = {head + kRecordHead, length};
    begin_ += length + kRecordAround;
    return RecordReadResult::text;
}

}  // namespace starling::network
