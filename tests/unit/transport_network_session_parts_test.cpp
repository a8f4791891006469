// The parts of a session, each against a simpler implementation.
#include <gtest/gtest.h>

#include <bitset>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <random>
#include <string>
#include <vector>

#include "transport/network/session/session.h"
#include "transport/network/wire/datagram.h"

namespace starling::network {
namespace {

TEST(RangeSet, AgreesWithASetOfBits) {
    constexpr size_t kSize = 96;
    std::mt19937 random(1);
    for (int round = 0; round < 2000; ++round) {
        RangeSet set;
        std::bitset<kSize> bits;
        for (int step = 0; step < 30; ++step) {
            const uint64_t start = random() % kSize;
            const SequenceRange range{start, start + random() % (kSize - start + 1)};
            const bool add = random() % 2 == 0;
            add ? set.add(range) : set.remove(range);
            for (uint64_t i = range.start; i < range.end; ++i) bits[i] = add;

            size_t sum = 0;
            for (size_t i = 0; i < set.size(); ++i) {
                sum += set[i].length();
                ASSERT_LT(set[i].start, set[i].end);
                ASSERT_TRUE(i == 0 || set[i].start > set[i - 1].end) << "touching";
                for (uint64_t b = set[i].start; b < set[i].end; ++b) ASSERT_TRUE(bits[b]);
            }
            ASSERT_EQ(sum, bits.count());

            const uint64_t from = random() % kSize;
            const SequenceRange asked{from, from + random() % (kSize - from + 1)};
            uint64_t gap = asked.start;
            while (gap < asked.end && bits[gap]) ++gap;
            ASSERT_EQ(set.covers(asked), gap == asked.end);
            ASSERT_EQ(set.first_gap(asked).start, gap);
            const SequenceRange found = set.first_gap(asked);
            for (uint64_t b = found.start; b < found.end; ++b) ASSERT_FALSE(bits[b]);
            ASSERT_TRUE(found.start == found.end || found.end == asked.end || bits[found.end]);
        }
    }
}

TEST(Flight, SequenceNumbersWrapAndSkipZero) {
    Flight flight(UINT32_MAX - 20);
    std::vector<uint32_t> numbers;
    for (uint64_t i = 0; i < 100; ++i) {
        flight.add() = {i, 0, 0, 8, 0, true, false, 0};
        numbers.push_back(flight.next() - 1);
        ASSERT_NE(numbers.back(), 0u);
    }
    for (uint64_t i = 0; i < 100; ++i) {
        ASSERT_TRUE(flight.find(numbers[i]));
        EXPECT_EQ(flight.find(numbers[i])->offset, i);
    }
    EXPECT_FALSE(flight.find(numbers[0] - 1));
    EXPECT_FALSE(flight.find(numbers[99] + 1));
    for (uint64_t i = 0; i < 100; ++i) {
        flight.find(numbers[i])->in_flight = false;
        flight.trim();
        EXPECT_FALSE(flight.find(numbers[i]));
        ASSERT_TRUE(i == 99 || flight.find(numbers[99]));
    }
    EXPECT_TRUE(flight.empty());
}

TEST(Flight, HoldsItsDeclaredNumberOfDatagrams) {
    Flight flight(1);  // the first number is 1, so that no number wraps
    uint32_t count = 0;
    while (!flight.full()) {
        flight.add() = {count, 0, 0, 8, 0, true, false, 0};
        ++count;
    }
    EXPECT_EQ(count, Flight::kMost - 1);
    for (uint32_t i = 0; i < count; ++i) ASSERT_EQ(flight[1 + i].offset, i);
}

packet::Header* append(SendBuffer& buffer, uint32_t payload, char with) {
    packet::Header* const header = buffer.reserve(payload);
    header->kind = packet::PacketKind::eager;
    header->operation = 0;
    header->message.sequence = 0;
    header->message.tag = 0;
    header->message.context = 0;
    header->message.source = 0;
    std::memset(static_cast<void*>(header + 1), with, payload);
    buffer.commit(payload);
    return header;
}

TEST(SendBuffer, KeepsTheStreamUntilItIsReleased) {
    SlabPool pool;
    SendBuffer buffer(pool);
    std::mt19937 random(2);
    std::string stream;  // the stream's bytes, from position buffer.begin() on
    std::vector<uint64_t> ends{0};
    uint64_t hint = 0;
    for (int step = 0; step < 20'000; ++step) {
        if (random() % 3 != 0) {
            const uint32_t payload = random() % 50 == 0 ? random() % (kMaxPayload + 1) : random() % 300;
            const packet::Header* const header = append(buffer, payload, static_cast<char>(step));
            stream.append(reinterpret_cast<const char*>(header), packet_bytes(payload));
            ends.push_back(buffer.end());
        }
        if (random() % 3 == 0 && buffer.stored() > 0) {
            const uint64_t to = buffer.begin() + random() % (buffer.stored() / kGrain + 1) * kGrain;
            stream.erase(0, to - buffer.begin());
            buffer.release(to);
        }
        ASSERT_EQ(buffer.stored(), stream.size());
        if (stream.empty()) continue;
        const uint64_t at = random() % (stream.size() / kGrain) * kGrain;
        SequenceRange range{buffer.begin() + at, buffer.end()};
        const uint32_t room = (random() % 3000 + 64) & ~7u;
        if (range.length() > room) {
            uint64_t unknown = 0;
            const uint64_t end = buffer.cut(range, room, random() % 2 ? hint : unknown);
            ASSERT_GT(end, range.start);
            ASSERT_LE(end, range.start + room);
            // The cut must be at the last end of a packet within `room`; if there is none, `room` is used completely.
            uint64_t best = 0;
            for (const uint64_t e : ends)
                if (e > range.start && e <= range.start + room) best = e;
            ASSERT_EQ(end, best ? best : range.start + room);
            range.end = end;
        }
        iovec parts[32];
        const int count = buffer.parts(range, parts, 32);
        std::string got;
        for (int i = 0; i < count; ++i) got.append(static_cast<const char*>(parts[i].iov_base), parts[i].iov_len);
        ASSERT_EQ(got.size(), range.length());
        ASSERT_EQ(got, stream.substr(range.start - buffer.begin(), range.length()));
    }
}

TEST(SendBuffer, ClearsTheGapsBetweenPackets) {
    SlabPool pool;
    SendBuffer buffer(pool);
    append(buffer, 64, 's');
    buffer.release(buffer.end());
    const packet::Header* const header = append(buffer, 1, 'x');
    const char* const payload = reinterpret_cast<const char*>(header + 1);
    for (int i = 1; i < 8; ++i) EXPECT_EQ(payload[i], 0);
}

TEST(CongestionWindow, GrowsWhenUsedAndShrinksOncePerRound) {
    CongestionWindow window;
    window.set_datagram(1000);
    const uint64_t first = window.bytes();
    window.acknowledged(10'000, false);
    EXPECT_EQ(window.bytes(), first) << "the window did not limit the sender, so it must not grow";
    window.acknowledged(10'000, true);
    EXPECT_EQ(window.bytes(), first + 10'000) << "in slow start the window grows by the acknowledged bytes";
    window.lost(5, 20);
    const uint64_t cut = window.bytes();
    EXPECT_EQ(cut, (first + 10'000) * 7 / 10);
    window.lost(7, 30);
    window.lost(19, 30);
    EXPECT_EQ(window.bytes(), cut) << "the lost datagram was sent before the window was reduced";
    window.acknowledged(cut, true);
    EXPECT_LE(window.bytes(), cut + 1000) << "after slow start the window grows by one datagram per round trip";
    window.lost(25, 40);
    EXPECT_LT(window.bytes(), cut);
    for (uint64_t i = 0; i < 100; ++i) window.lost(100 * i + 100, 100 * i + 200);
    EXPECT_EQ(window.bytes(), CongestionWindow::kLeast * 1000u);
}

TEST(CongestionWindow, GrowsFastAgainAfterATimeout) {
    CongestionWindow window;
    const uint64_t before = window.bytes();
    window.collapse(1);
    EXPECT_LT(window.bytes(), before);
    for (int i = 0; i < 2; ++i) window.acknowledged(window.bytes(), true);
    EXPECT_GE(window.bytes(), before / 2);
}

TEST(RoundTrip, FollowsTheMeasuredTimes) {
    RoundTrip time;
    EXPECT_EQ(time.timeout(), kFirstTimeout);
    for (int i = 0; i < 100; ++i) time.sample(50 * kMicrosecond);
    EXPECT_EQ(time.smoothed(), 50 * kMicrosecond);
    EXPECT_EQ(time.timeout(), 100 * kMicrosecond + 2 * kAckDelay)
        << "two round trips, and twice the time for which the peer may delay an acknowledgement";
    for (int i = 0; i < 100; ++i) time.sample(40 * kMillisecond);
    EXPECT_GT(time.timeout(), 80 * kMillisecond);
    EXPECT_LT(time.timeout(), 90 * kMillisecond);
}

/// Returns a well-formed datagram with two acknowledged ranges and 16 stream bytes.
std::vector<uint64_t> sample() {
    std::vector<uint64_t> words((sizeof(DatagramHeader) + sizeof(Introduction) + 2 * sizeof(AckRange) + 16) / 8);
    DatagramHeader header{};
    header.magic = DatagramHeader::kMagic;
    header.version = DatagramHeader::kVersion;
    header.flags = datagram_flag::kIntroduce;
    header.bytes = static_cast<uint32_t>(words.size() * 8);
    header.epoch = 1;
    header.ranges = 2;
    std::memcpy(words.data(), &header, sizeof header);
    const AckRange ranges[] = {{8, 8}, {24, 16}};
    words[10] = 4711;
    std::memcpy(&words[11], ranges, sizeof ranges);
    return words;
}

bool decodes(const std::vector<uint64_t>& words, size_t bytes, Datagram& out) {
    return decode(reinterpret_cast<const std::byte*>(words.data()), bytes, out);
}

TEST(Datagram, IsDecoded) {
    const auto words = sample();
    Datagram datagram;
    ASSERT_TRUE(decodes(words, words.size() * 8, datagram));
    EXPECT_EQ(datagram.introduction.key, 4711u);
    EXPECT_EQ(datagram.ranges[1].start, 24u);
    EXPECT_EQ(datagram.stream_bytes, 16u);
    EXPECT_EQ(datagram.stream, reinterpret_cast<const std::byte*>(&words[13]));
}

TEST(Datagram, IsRefusedIfMalformed) {
    const auto good = sample();
    Datagram datagram;
    for (size_t bytes = 0; bytes < good.size() * 8; ++bytes) EXPECT_FALSE(decodes(good, bytes, datagram)) << bytes;
    const auto with = [&](auto change) {
        auto words = good;
        DatagramHeader header;
        std::memcpy(&header, words.data(), sizeof header);
        AckRange ranges[2];
        std::memcpy(ranges, &words[11], sizeof ranges);
        change(header, ranges);
        std::memcpy(words.data(), &header, sizeof header);
        std::memcpy(&words[11], ranges, sizeof ranges);
        return decodes(words, words.size() * 8, datagram);
    };
    EXPECT_TRUE(with([](DatagramHeader&, AckRange*) {}));
    EXPECT_FALSE(with([](DatagramHeader& h, AckRange*) { h.magic ^= 1; }));
    EXPECT_FALSE(with([](DatagramHeader& h, AckRange*) { h.version = 2; }));
    EXPECT_FALSE(with([](DatagramHeader& h, AckRange*) { h.flags |= 128; }));
    EXPECT_FALSE(with([](DatagramHeader& h, AckRange*) { h.hold = kMostHold + 1; }));
    EXPECT_FALSE(with([](DatagramHeader& h, AckRange*) { h.epoch = 0; }));
    EXPECT_FALSE(with([](DatagramHeader& h, AckRange*) { h.ranges = 17; }));
    EXPECT_FALSE(with([](DatagramHeader& h, AckRange*) { h.offset = 4; }));
    EXPECT_FALSE(with([](DatagramHeader& h, AckRange*) { h.offset = uint64_t{1} << 63; }));
    EXPECT_FALSE(with([](DatagramHeader& h, AckRange*) { h.ack = 12; }));
    EXPECT_FALSE(with([](DatagramHeader& h, AckRange*) { h.bytes += 8; }));
    EXPECT_FALSE(with([](DatagramHeader&, AckRange* r) { r[0].length = 0; }));
    EXPECT_FALSE(with([](DatagramHeader&, AckRange* r) { r[0].start = 0; }));
    EXPECT_FALSE(with([](DatagramHeader&, AckRange* r) { r[0].length = 16; })) << "the range touches the next one";
    EXPECT_FALSE(with([](DatagramHeader&, AckRange* r) { r[1].start = 12; }));
}

/// Records delivered packets. At any packet it can stop the delivery, start it again, or fail for lack of memory.
struct Sink final : PacketSink {
    bool deliver(const packet::Header& header, const std::byte* payload) override {
        if (refuses && refuses()) throw std::bad_alloc();
        got.emplace_back(reinterpret_cast<const char*>(payload), header.bytes);
        return got.size() != stop_after;
    }
    std::vector<std::string> got;
    size_t stop_after = SIZE_MAX;
    std::function<bool()> refuses;
};

/// Makes twenty packets, long and short ones: their contents, and the stream that a send buffer makes of them.
void make_stream(SlabPool& pool, std::mt19937& random, std::vector<std::string>& sent, std::string& stream) {
    SendBuffer buffer(pool);
    for (int i = 0; i < 20; ++i) {
        const uint32_t payload = random() % 4 == 0 ? random() % 5000 : random() % 40;
        append(buffer, payload, static_cast<char>('a' + i));
        sent.emplace_back(payload, static_cast<char>('a' + i));
    }
    SequenceRange all{0, buffer.end()};
    iovec parts[16];
    const int count = buffer.parts(all, parts, 16);
    for (int i = 0; i < count; ++i) stream.append(static_cast<const char*>(parts[i].iov_base), parts[i].iov_len);
}

/// Delivers a part of the stream at any offset and of any length; retries as long as memory is lacking.
void give_any_part(const std::string& stream, std::mt19937& random, Reassembly& in, Sink& sink) {
    const uint64_t start = random() % (stream.size() / kGrain) * kGrain;
    const size_t length = std::min<size_t>((random() % 100 + 1) * kGrain, stream.size() - start);
    std::vector<uint64_t> copy(length / 8);
    std::memcpy(copy.data(), stream.data() + start, length);
    for (bool taken = false; !taken;) {
        try {
            in.accept(start, reinterpret_cast<const std::byte*>(copy.data()), static_cast<uint32_t>(length), sink);
            taken = true;
        } catch (const std::bad_alloc&) {}
    }
}

TEST(Reassembly, AnyOrderAndAnyCutYieldTheSamePacketsWithAndWithoutMemory) {
    std::mt19937 random(3);
    SlabPool pool;
    for (int round = 0; round < 300; ++round) {
        std::vector<std::string> sent;
        std::string stream;
        make_stream(pool, random, sent, stream);
        Reassembly in(1 << 20);
        Sink sink;
        if (round % 2) sink.refuses = [&random] { return random() % 3 == 0; };
        while (in.expected() < stream.size()) give_any_part(stream, random, in, sink);
        ASSERT_EQ(sink.got, sent);
        EXPECT_FALSE(in.has_holes());
    }
}

TEST(Reassembly, StoresNoMoreThanItsWindow) {
    Reassembly in(4096);
    Sink sink;
    const std::vector<uint64_t> crumb(1);
    const auto give = [&](uint64_t offset) {
        return in.accept(offset, reinterpret_cast<const std::byte*>(crumb.data()), kGrain, sink);
    };
    EXPECT_EQ(give(4096), Reassembly::ReassemblyResult::beyond);
    EXPECT_EQ(give(4088), Reassembly::ReassemblyResult::early);
    EXPECT_EQ(give(4088), Reassembly::ReassemblyResult::duplicate);
    int kept = 1;
    for (uint64_t offset = 16; offset < 4088; offset += 16) kept += give(offset) == Reassembly::ReassemblyResult::early;
    EXPECT_LT(kept, 8192 / 24) << "small fragments need more memory than their length";
    AckRange ranges[16];
    bool more = false;
    EXPECT_EQ(in.ranges(ranges, 16, more), 16);
    EXPECT_TRUE(more);
    EXPECT_EQ(ranges[0].start, 16u);
    EXPECT_EQ(ranges[0].length, 8u);
}

}  // namespace
}  // namespace starling::network
