// The direct ring against a plain queue, and between two processes.
#include "transport/shm/ring.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <random>
#include <thread>
#include <vector>

namespace starling::shm {
namespace {

/// A new ring in memory that a forked child shares.
class Rings : public testing::Test {
  protected:
    void SetUp() override {
        void* memory = mmap(nullptr, sizeof(Ring), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        ASSERT_NE(memory, MAP_FAILED);
        ring = static_cast<Ring*>(memory);
    }
    void TearDown() override {
        if (ring) munmap(ring, sizeof(Ring));
    }
    /// Returns a writer to the ring, from which `reader` reads.
    RingWriter begin() {
        reader.reset(*ring);
        return RingWriter(*ring);
    }

    Ring* ring = nullptr;
    RingReader reader;
};

/// A byte of a packet, computed from the packet's number.
std::byte byte_of(uint64_t number, uint32_t i) { return static_cast<std::byte>(number * 131 + i * 7 + i / 256); }

bool send(RingWriter& writer, uint64_t number, uint32_t bytes) {
    std::byte* payload = writer.reserve(bytes);
    if (!payload) return false;
    for (uint32_t i = 0; i < bytes; ++i) payload[i] = byte_of(number, i);
    writer.header().message.context = number;
    writer.commit(bytes);
    return true;
}

void expect_packet(const RingReader& reader, uint64_t number, uint32_t bytes) {
    const packet::Header* header = reader.front();
    ASSERT_TRUE(header) << "packet " << number << " is missing";
    ASSERT_EQ(header->message.context, number);
    ASSERT_EQ(header->bytes, bytes);
    const std::byte* payload = reader.payload();
    for (uint32_t i = 0; i < bytes; ++i) ASSERT_EQ(payload[i], byte_of(number, i)) << "byte " << i << " of packet " << number;
}

uint32_t random_size(std::mt19937& random) {
    constexpr uint32_t kEdges[] = {0,           1, 31, 32, 33, 63, 64, 65, 127, 128, 129, kRingPayload - 64, kRingPayload - 1,
                                   kRingPayload};
    switch (random() % 3) {
        case 0:
            return kEdges[random() % std::size(kEdges)];
        case 1:
            return random() % 200;
        default:
            return random() % (kRingPayload + 1);
    }
}

struct Packet {
    uint64_t number;
    uint32_t bytes;
};

TEST_F(Rings, IsAQueue) {
    for (unsigned seed = 0; seed < 20 && !HasFailure(); ++seed) {
        std::mt19937 random(seed);
        // The ring's slot is reused each time, with whatever its former user left in it.
        RingWriter writer = begin();
        std::deque<Packet> model;
        uint64_t number = 0;
        EXPECT_EQ(reader.front(), nullptr) << "the reader sees a packet of the ring's former writer";
        for (int step = 0; step < 3000 && !HasFailure(); ++step) {
            // Send and receive in bursts, so that the ring is sometimes full and sometimes empty.
            const bool sending = step / 200 % 2 ? random() % 4 == 0 : random() % 4 != 0;
            if (sending) {
                const uint32_t bytes = random_size(random);
                if (send(writer, number, bytes))
                    model.push_back({number++, bytes});
                else
                    ASSERT_FALSE(model.empty()) << "no room in a drained ring for " << bytes << " bytes";
            } else if (model.empty()) {
                ASSERT_EQ(reader.front(), nullptr);
            } else {
                expect_packet(reader, model.front().number, model.front().bytes);
                reader.pop();
                model.pop_front();
            }
        }
        EXPECT_GT(number, 500u);
    }
}

// The reader returns free space in batches. Wherever head and tail are, an empty ring must have room for a packet of any size.
TEST_F(Rings, ADrainedRingHasRoomForAnything) {
    RingWriter writer = begin();
    std::mt19937 random(3);
    uint64_t number = 0;
    for (int i = 0; i < 50000; ++i) {
        // Short packets move head and tail through every line; long packets need the most room.
        const uint32_t bytes = random() % 4 ? 33 + random() % 2000 : kRingPayload - random() % 3;
        ASSERT_TRUE(writer.reserve(bytes)) << "step " << i;
        writer.header().message.context = number;
        writer.commit(bytes);
        ASSERT_TRUE(reader.front());
        ASSERT_EQ(reader.front()->message.context, number++);
        reader.pop();
    }
}

TEST_F(Rings, AcceptsNoMoreThanItsCapacity) {
    RingWriter writer = begin();
    uint32_t lines = 0;
    while (send(writer, lines, 8)) ++lines;
    EXPECT_EQ(lines, kRingLines);
    for (uint32_t i = 0; i < lines; ++i) {
        expect_packet(reader, i, 8);
        reader.pop();
    }
    uint32_t large = 0;
    while (send(writer, large, kRingPayload)) ++large;
    EXPECT_EQ(large, kBulkBytes / kRingPayload);
    for (uint32_t i = 0; i < large; ++i) {
        expect_packet(reader, i, kRingPayload);
        reader.pop();
    }
    EXPECT_EQ(reader.front(), nullptr);
}

TEST_F(Rings, ReservingAgainChangesNothing) {
    RingWriter writer = begin();
    for (uint64_t number = 0; number < 1000; ++number) {
        for (const uint32_t bytes : {16384u, 8u, 5000u}) ASSERT_TRUE(writer.reserve(bytes));
        EXPECT_EQ(reader.front(), nullptr);
        const auto bytes = static_cast<uint32_t>(number % 300);
        ASSERT_TRUE(send(writer, number, bytes));
        expect_packet(reader, number, bytes);
        reader.pop();
    }
}

void produce(Ring& ring, uint64_t count, unsigned seed) {
    RingWriter writer(ring);
    std::mt19937 random(seed);
    for (uint64_t number = 0; number < count; ++number) {
        const uint32_t bytes = random() % 8 ? random() % 300 : random_size(random);
        while (!send(writer, number, bytes)) sched_yield();
    }
}

void consume(RingReader& reader, uint64_t count, unsigned seed) {
    std::mt19937 random(seed);
    for (uint64_t number = 0; number < count && !::testing::Test::HasFatalFailure(); ++number) {
        const uint32_t bytes = random() % 8 ? random() % 300 : random_size(random);
        while (!reader.front()) sched_yield();
        expect_packet(reader, number, bytes);
        reader.pop();
    }
    EXPECT_EQ(reader.front(), nullptr);
}

TEST_F(Rings, BetweenProcesses) {
    reader.reset(*ring);  // reset() must precede the child's first write
    constexpr uint64_t kCount = 50000;
    const pid_t pid = fork();
    if (pid == 0) {
        alarm(250);
        produce(*ring, kCount, 5);
        _exit(0);
    }
    consume(reader, kCount, 5);
    int status = 0;
    if (HasFailure()) kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    EXPECT_EQ(status, 0);
}

// The thread sanitizer sees only threads, so one plays each process.
TEST_F(Rings, BetweenThreads) {
    reader.reset(*ring);
    constexpr uint64_t kCount = 20000;
    std::thread producer([this] { produce(*ring, kCount, 6); });
    consume(reader, kCount, 6);
    producer.join();
}

TEST(Ring, SpansAreContiguousWholeLines) {
    std::mt19937_64 random(1);
    for (int i = 0; i < 100000; ++i) {
        const uint64_t position = random() % (uint64_t{1} << (random() % 50 + 7)) / 64 * 64;
        const auto bytes = static_cast<uint32_t>(random() % kRingPayload + 1);
        const BulkSpan span = bulk_span(position, bytes);
        ASSERT_GE(span.start, position);
        ASSERT_LT(span.start - position, kRingPayload + 64);
        ASSERT_GE(span.end - span.start, bytes);
        ASSERT_EQ(span.end % 64, 0u);
        ASSERT_EQ(span.start / kBulkBytes, (span.end - 1) / kBulkBytes);
    }
}

}  // namespace
}  // namespace starling::shm
