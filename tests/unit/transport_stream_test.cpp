// The bookkeeping of streams, compared with plain bit maps.
#include "transport/stream.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <vector>

namespace starling::transport {
namespace {

OutStream::StreamSource of_bytes(uint64_t bytes) {
    OutStream::StreamSource source;
    source.bytes = bytes;
    return source;
}

TEST(OutStream, SendsEveryByteOnceInOrder) {
    OutStream stream(of_bytes(1000));
    EXPECT_TRUE(stream.has_work());
    EXPECT_EQ(stream.waiting_bytes(), 1000u);
    EXPECT_EQ(stream.extract(1, 300), (StreamRange{0, 300}));
    EXPECT_EQ(stream.extract(2, 300), (StreamRange{300, 600}));
    EXPECT_EQ(stream.extract(kReliablePath, 1000), (StreamRange{600, 1000}));
    EXPECT_FALSE(stream.has_work());
    EXPECT_TRUE(stream.extract(1, 10).empty());
}

TEST(OutStream, BytesOfALostPathAreSentAgain) {
    OutStream stream(of_bytes(1000));
    stream.extract(1, 300);
    stream.extract(2, 300);
    EXPECT_TRUE(stream.lose(1));
    EXPECT_FALSE(stream.lose(1));
    EXPECT_EQ(stream.waiting_bytes(), 700u);
    EXPECT_EQ(stream.extract(2, 200), (StreamRange{0, 200}));
    EXPECT_EQ(stream.extract(2, 200), (StreamRange{200, 300}));
    EXPECT_EQ(stream.extract(2, 2000), (StreamRange{600, 1000}));
    EXPECT_TRUE(stream.lose(2));
    EXPECT_EQ(stream.waiting_bytes(), 1000u);
}

TEST(OutStream, AReliablePathLosesNothing) {
    OutStream stream(of_bytes(100));
    stream.extract(kReliablePath, 60);
    stream.extract(3, 40);
    stream.lose_all();
    EXPECT_EQ(stream.waiting_bytes(), 40u);
    EXPECT_EQ(stream.extract(kReliablePath, 100), (StreamRange{60, 100}));
}

TEST(OutStream, ConfirmedBytesAreNotSentAgain) {
    OutStream stream(of_bytes(100));
    stream.extract(1, 50);
    stream.extract(2, 50);
    stream.lose(2);
    stream.confirm(70);
    EXPECT_EQ(stream.waiting_bytes(), 30u);
    EXPECT_FALSE(stream.lose(1));
}

TEST(Coverage, CountsEveryByteOnceAgainstABitMap) {
    std::mt19937 random(7);
    for (int round = 0; round < 2000; ++round) {
        Coverage coverage;
        std::vector<bool> have(200);
        for (int i = 0; i < 60; ++i) {
            const uint64_t begin = random() % 200, end = begin + random() % (201 - begin);
            uint64_t fresh = 0;
            for (uint64_t at = begin; at < end; ++at) {
                fresh += !have[at];
                have[at] = true;
            }
            ASSERT_EQ(coverage.add({begin, end}), fresh);
            uint64_t prefix = 0;
            while (prefix < 200 && have[prefix]) ++prefix;
            ASSERT_EQ(coverage.prefix(), prefix);
            ASSERT_EQ(coverage.bytes(), static_cast<uint64_t>(std::count(have.begin(), have.end(), true)));
        }
    }
}

// Paths die at random, and ranges arrive or not. In the end everything has arrived, and only lost bytes were sent twice.
TEST(Streams, FailoverAmongDyingPathsDeliversEverything) {
    std::mt19937 random(11);
    for (int round = 0; round < 500; ++round) {
        const uint64_t bytes = random() % 5000 + 1;
        OutStream stream(of_bytes(bytes));
        Coverage coverage;
        uint64_t sent = 0, lost = 0;
        struct Flight {
            StreamRange range;
            PathId path;
        };
        std::vector<Flight> flight;
        PathId newest = 3;
        std::vector<PathId> alive{1, 2, 3};
        while (coverage.bytes() < bytes) {
            ASSERT_TRUE(stream.has_work() || !flight.empty());
            const auto dice = random() % 100;
            if (dice < 45) {
                const PathId path = alive[random() % alive.size()];
                const StreamRange range = stream.extract(path, random() % 400 + 1);
                if (!range.empty()) flight.push_back({range, path});
                sent += range.bytes();
            } else if (dice < 95 && !flight.empty()) {
                const size_t i = random() % flight.size();
                coverage.add(flight[i].range);
                flight.erase(flight.begin() + static_cast<long>(i));
                if (random() % 8 == 0) stream.confirm(coverage.prefix());
            } else if (dice >= 95) {
                PathId& path = alive[random() % alive.size()];
                const uint64_t before = stream.waiting_bytes();
                stream.lose(path);
                lost += stream.waiting_bytes() - before;
                // Each range in transit on the dead path may still arrive, or be lost.
                std::erase_if(flight, [&](const Flight& f) { return f.path == path && random() % 2; });
                path = ++newest;
            }
        }
        ASSERT_LE(sent, bytes + lost);
    }
}

}  // namespace
}  // namespace starling::transport
