// TCP frames: every way of cutting the byte stream yields the same frames, and a malformed stream is detected.
#include "transport/network/tcp/frames.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace starling::network {
namespace {

using Bytes = std::vector<std::byte>;

Bytes pattern(size_t bytes, uint32_t seed) {
    Bytes result(bytes);
    std::mt19937 random(seed);
    for (auto& byte : result) byte = static_cast<std::byte>(random());
    return result;
}

void append(Bytes& stream, const void* data, size_t bytes) {
    const auto* from = static_cast<const std::byte*>(data);
    stream.insert(stream.end(), from, from + bytes);
}

void append_frame(Bytes& stream, TcpFrameKind kind, const Bytes& contents) {
    const FramePrefix prefix{static_cast<uint32_t>(contents.size()), kind, 0, FramePrefix::kMark};
    append(stream, &prefix, sizeof prefix);
    append(stream, contents.data(), contents.size());
    stream.resize(stream.size() + frame_padding(contents.size()));
}

/// Appends to `stream` the frame of one fragment, written in portions of random size.
void append_piece(Bytes& stream, const OutStream& out, StreamRange range, const Bytes& data, std::mt19937& random) {
    FrameWriter writer;
    writer.begin_fragment(out, range, data.data());
    while (writer.busy()) {
        iovec parts[FrameWriter::kParts];
        const int count = writer.gather(parts);
        size_t most = random() % 50 + 1, written = 0;
        for (int i = 0; i < count && most > 0; ++i) {
            const size_t n = std::min(most, parts[i].iov_len);
            append(stream, parts[i].iov_base, n);
            most -= n, written += n;
        }
        writer.wrote(written);
    }
}

/// Records what arrives as text, for comparison. Fragments with odd request ids are received in place, those with even ones are unpacked.
struct Collector final : FrameSink {
    std::string log;
    std::map<uint32_t, Bytes> memory;
    bool aligned = true;
    int stop_after = -1;

    bool frame(TcpFrameKind kind, const std::byte* contents, size_t bytes) override {
        aligned &= reinterpret_cast<uintptr_t>(contents) % 8 == 0;
        log += "f" + std::to_string(static_cast<int>(kind)) + ":";
        log.append(reinterpret_cast<const char*>(contents), bytes);
        return stop_after < 0 || stop_after-- > 0;
    }
    std::byte* target(const StreamFragment& piece, uint64_t done, uint64_t bytes) override {
        EXPECT_LE(done + bytes, piece.bytes);
        return piece.serial % 2 ? room(piece) + done : nullptr;
    }
    void unpack(const StreamFragment& piece, uint64_t done, const std::byte* data, uint64_t bytes) override {
        EXPECT_LE(done + bytes, piece.bytes);
        std::memcpy(room(piece) + done, data, bytes);
    }
    bool on_fragment(const StreamFragment& piece) override {
        log += "p" + std::to_string(piece.serial) + "," + std::to_string(piece.generation) + "," +
               std::to_string(piece.offset) + ":";
        log.append(reinterpret_cast<const char*>(room(piece)), piece.bytes);
        memory.erase(piece.serial);
        return stop_after < 0 || stop_after-- > 0;
    }
    std::byte* room(const StreamFragment& piece) {
        Bytes& place = memory[piece.serial];
        if (place.empty()) place.resize(piece.bytes);
        return place.data();
    }
};

constexpr size_t kBuffer = 4096;

/// Feeds a stream in portions that `portion` chooses. Returns false if the reader reported an error.
template <class F>
bool feed(const Bytes& stream, FrameReader& reader, FrameSink& sink, F&& portion) {
    alignas(8) static std::byte buffer[kBuffer];
    for (size_t at = 0; at < stream.size();) {
        iovec parts[FrameReader::kParts];
        const int count = reader.prepare(sink, buffer, kBuffer, parts);
        size_t most = std::min<size_t>(std::max<size_t>(portion(), 1), stream.size() - at), filled = 0;
        for (int i = 0; i < count && most > 0; ++i) {
            const size_t n = std::min(most, parts[i].iov_len);
            std::memcpy(parts[i].iov_base, stream.data() + at + filled, n);
            most -= n, filled += n;
        }
        EXPECT_GT(filled, 0u);
        at += filled;
        if (!reader.arrived(sink, filled)) return false;
    }
    return true;
}

struct Sample {
    Bytes stream;
    std::string log;
};

Sample sample(uint32_t seed, int frames, size_t longest) {
    Sample result;
    std::mt19937 random(seed);
    OutStream::StreamSource source;
    source.bytes = 1u << 30;
    for (int i = 0; i < frames; ++i) {
        const Bytes contents = pattern(random() % longest + 1, random());
        if (random() % 2) {
            append_frame(result.stream, TcpFrameKind::session, contents);
            result.log += "f1:";
        } else {
            source.serial = random() % 4;
            source.generation = random() % 100;
            const OutStream out(source);
            const uint64_t offset = random() % 10000;
            append_piece(result.stream, out, {offset, offset + contents.size()}, contents, random);
            result.log += "p" + std::to_string(source.serial) + "," + std::to_string(source.generation) + "," +
                          std::to_string(offset) + ":";
        }
        result.log.append(reinterpret_cast<const char*>(contents.data()), contents.size());
    }
    return result;
}

TEST(TcpFrames, EverySplitOfTheStreamIntoTwo) {
    const Sample s = sample(1, 6, 60);
    for (size_t cut = 0; cut <= s.stream.size(); ++cut) {
        FrameReader reader;
        Collector collector;
        bool first = true;
        ASSERT_TRUE(feed(s.stream, reader, collector, [&] {
            const size_t n = first ? cut : s.stream.size();
            first = false;
            return n;
        }));
        ASSERT_EQ(collector.log, s.log) << "cut at " << cut;
        ASSERT_TRUE(collector.aligned && reader.at_boundary());
    }
}

TEST(TcpFrames, EveryPortionSize) {
    const Sample s = sample(2, 40, 300);
    for (size_t portion = 1; portion < 700; ++portion) {
        FrameReader reader;
        Collector collector;
        ASSERT_TRUE(feed(s.stream, reader, collector, [&] { return portion; }));
        ASSERT_EQ(collector.log, s.log) << "portions of " << portion;
        ASSERT_TRUE(collector.aligned && reader.at_boundary());
    }
}

TEST(TcpFrames, RandomPortionsOfLongFrames) {
    std::mt19937 random(3);
    for (uint32_t round = 0; round < 60; ++round) {
        const Sample s = sample(100 + round, 30, 20000);
        FrameReader reader;
        Collector collector;
        ASSERT_TRUE(feed(s.stream, reader, collector, [&] { return random() % (1u << random() % 16); }));
        ASSERT_EQ(collector.log, s.log);
        ASSERT_TRUE(collector.aligned && reader.at_boundary());
    }
}

TEST(TcpFrames, AnEndWithinAFrameIsDetected) {
    const Sample s = sample(4, 1, 100);
    for (size_t cut = 1; cut < s.stream.size(); ++cut) {
        FrameReader reader;
        Collector collector;
        feed(Bytes(s.stream.begin(), s.stream.begin() + static_cast<long>(cut)), reader, collector, [] { return 7; });
        EXPECT_FALSE(reader.at_boundary()) << cut;
    }
}

TEST(TcpFrames, AMalformedFrameEndsReading) {
    const auto refused = [](FramePrefix prefix) {
        Bytes stream;
        append(stream, &prefix, sizeof prefix);
        stream.resize(64);
        FrameReader reader;
        Collector collector;
        return !feed(stream, reader, collector, [] { return 64; });
    };
    EXPECT_TRUE(refused({8, TcpFrameKind::session, 0, 0x1234}));
    EXPECT_TRUE(refused({0, TcpFrameKind::session, 0, FramePrefix::kMark}));
    EXPECT_TRUE(refused({kTcpFrame + 1, TcpFrameKind::session, 0, FramePrefix::kMark}));
    EXPECT_TRUE(refused({sizeof(PieceHead), TcpFrameKind::fragment, 0, FramePrefix::kMark}));
    EXPECT_TRUE(refused({~0u, TcpFrameKind::fragment, 0, FramePrefix::kMark}));
    EXPECT_TRUE(refused({7, TcpFrameKind::addresses, 0, FramePrefix::kMark}));
    EXPECT_TRUE(refused({16, TcpFrameKind::finish, 0, FramePrefix::kMark}));
    EXPECT_TRUE(refused({8, static_cast<TcpFrameKind>(9), 0, FramePrefix::kMark}));
    EXPECT_FALSE(refused({56, TcpFrameKind::session, 0, FramePrefix::kMark}));
}

TEST(TcpFrames, ASinkThatStopsGetsNoMoreFrames) {
    const Sample s = sample(5, 20, 100);
    for (int frames = 0; frames < 20; ++frames) {
        FrameReader reader;
        Collector collector;
        collector.stop_after = frames;
        EXPECT_FALSE(feed(s.stream, reader, collector, [] { return 4096; }));
        EXPECT_EQ(s.log.substr(0, collector.log.size()), collector.log);
    }
}

TEST(TcpFrames, APartlyReadFrameContinues) {
    const Bytes contents = pattern(500, 6);
    const FramePrefix prefix{500, TcpFrameKind::session, 0, FramePrefix::kMark};
    std::byte zeros[8]{};
    const iovec list[] = {{const_cast<FramePrefix*>(&prefix), sizeof prefix},
                          {const_cast<std::byte*>(contents.data()), 200},
                          {const_cast<std::byte*>(contents.data()) + 200, 300},
                          {zeros, frame_padding(500)}};
    Bytes whole;
    append_frame(whole, TcpFrameKind::session, contents);
    for (size_t taken = 0; taken < whole.size(); ++taken) {
        FrameWriter writer;
        writer.store_tail(list, 4, taken);
        Bytes stream(whole.begin(), whole.begin() + static_cast<long>(taken));
        while (writer.busy()) {
            iovec parts[FrameWriter::kParts];
            ASSERT_EQ(writer.gather(parts), 1);
            const size_t n = std::min<size_t>(parts[0].iov_len, 33);
            append(stream, parts[0].iov_base, n);
            writer.wrote(n);
        }
        ASSERT_EQ(stream, whole);
    }
}

}  // namespace
}  // namespace starling::network
