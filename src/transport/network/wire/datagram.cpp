#include "transport/network/wire/datagram.h"

#include <cstring>

namespace starling::network {

namespace {

// The limit of stream offsets, so that sums cannot overflow.
constexpr uint64_t kFarthest = uint64_t{1} << 62;

bool sensible(const DatagramHeader& header) {
    return (header.flags & ~datagram_flag::kAll) == 0 && header.hold <= kMostHold && header.ranges <= kMostRanges &&
           header.epoch != 0 && header.offset < kFarthest && header.ack < kFarthest && header.offset % kGrain == 0 &&
           header.ack % kGrain == 0;
}

bool ascending(const AckRange* ranges, int count) {
    uint64_t end = 0;
    for (int i = 0; i < count; ++i) {
        if (ranges[i].length == 0 || ranges[i].length % kGrain != 0 || ranges[i].start % kGrain != 0) return false;
        // Reject a range that begins at the cumulative acknowledgement, since the acknowledgement would include it.
        if (ranges[i].start <= end) return false;
        end = uint64_t{ranges[i].start} + ranges[i].length;
    }
    return true;
}

}  // namespace

bool decode(const std::byte* data, size_t bytes, Datagram& out) {
    if (bytes < sizeof(DatagramHeader) || bytes > kMostFrame) return false;
    std::memcpy(&out.header, data, sizeof out.header);
    const DatagramHeader& header = out.header;
    if (header.magic != DatagramHeader::kMagic || header.version != DatagramHeader::kVersion) return false;
    if (header.bytes != bytes || !sensible(header)) return false;
    size_t at = sizeof header;
    out.introduction = {};
    if (header.flags & datagram_flag::kIntroduce) {
        if (bytes - at < sizeof(Introduction)) return false;
        std::memcpy(&out.introduction, data + at, sizeof(Introduction));
        at += sizeof(Introduction);
    }
    if (bytes - at < header.ranges * sizeof(AckRange)) return false;
    out.ranges = reinterpret_cast<const AckRange*>(data + at);
    if (!ascending(out.ranges, header.ranges)) return false;
    at += header.ranges * sizeof(AckRange);
    out.stream = data + at;
    out.stream_bytes = static_cast<uint32_t>(bytes - at);
    return out.stream_bytes % kGrain == 0;
}

}  // namespace starling::network
