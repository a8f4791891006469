// A model of the outbox's rotation with few words, in every order of steps, with a reader killed at any step. Then the real outbox behind
// rings, between threads, and with readers that never poll.
#include "transport/shm/outbox.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "exploration.h"
#include "steps.h"
#include "transport/shm/outbox_readers.h"
#include "transport/shm/ring.h"
#include "transport/transport.h"

namespace starling::shm {
namespace {

// --- The model: every order of steps ---

constexpr int kReaders = 2;
constexpr uint64_t kLines = 2;
constexpr uint32_t kArea = 3;
constexpr int kMessages = 5;

/// Memory of sender and readers: an area of three words, and a queue of two lines per reader.
struct Memory {
    test::Word area[kArea];
    struct Queue {
        test::Word written, consumed;
        test::Word lines[kLines];
    } queues[kReaders];
};
Memory* memory = nullptr;  ///< memory of the model state whose step runs

struct ModelCount {
    uint64_t reader = 0;
    uint64_t value() const { return memory->queues[reader].consumed.load(); }
    bool operator==(const ModelCount&) const = default;
};
using ModelRotation = Rotation<ModelCount, 4>;

struct World {
    Memory memory;
    ModelRotation rotation;
    test::Operation sender, readers[kReaders];
    uint64_t sent = 0, without = 0;  ///< number of messages sent; number of attempts that found no room
    uint64_t written[kReaders] = {}, read[kReaders] = {};
    bool dead = false, forgotten = false;  ///< whether reader 0 is dead; whether the sender knows that
    std::string trace;

    std::string key() const {
        test::Key key;
        for (const auto& word : memory.area) key.put(word.value);
        for (const auto& queue : memory.queues) {
            key.put(queue.written.value), key.put(queue.consumed.value);
            for (const auto& line : queue.lines) key.put(line.value);
        }
        static_assert(std::is_trivially_copyable_v<ModelRotation>);
        key.text.append(reinterpret_cast<const char*>(&rotation), sizeof rotation);
        key.put(sender);
        for (const auto& reader : readers) key.put(reader);
        for (int r = 0; r < kReaders; ++r) key.put(written[r] << 32 | read[r]);
        key.put(sent << 32 | without << 8 | static_cast<uint64_t>(dead) << 1 | static_cast<uint64_t>(forgotten));
        return key.text;
    }
};

// Returns the length of message n, one or two words. The message goes to reader n % 2, and each of its words holds n + 1.
uint32_t words_of(uint64_t n) { return n / 2 % 2 ? 1 : 2; }

class Orders final : public test::Exploration<World> {
  public:
    explicit Orders(bool kills) : kills_(kills) {}
    uint64_t most_without = 0, all_sent = 0;

  private:
    void expand(const World& world) override {
        if (world.sent < kMessages) send(world);
        for (uint64_t r = 0; r < kReaders; ++r)
            if (r > 0 || !world.dead) read(world, r);
        if (kills_ && !world.dead) {
            World next = world;
            next.dead = true;
            next.trace += " kill";
            push(std::move(next));
        }
        if (world.dead && !world.forgotten && world.sender.seen.empty()) {
            World next = world;
            next.forgotten = true;
            next.rotation.forget(&readers_[0]);
            next.trace += " forget";
            push(std::move(next));
        }
        if (world.sent == kMessages) check_end(world);
    }

    void send(const World& world) {
        World next = world;
        memory = &next.memory;
        const uint64_t n = next.sent, r = n % kReaders;
        if (r == 0 && next.forgotten) {
            ++next.sent;
            return push(std::move(next));
        }
        ModelRotation rotation = next.rotation;
        bool wrote = false;
        const bool over = test::step(next.sender, [&] {
            rotation = world.rotation;
            auto& queue = next.memory.queues[r];
            if (next.written[r] - queue.consumed.load() >= kLines) return;  // reader r's queue has no free line
            const uint32_t start = rotation.find(words_of(n), kArea);
            if (start == ModelRotation::kNone) return;
            for (uint32_t i = 0; i < words_of(n); ++i) next.memory.area[start + i].store(n + 1);
            rotation.hold(start, words_of(n), {{r}, next.written[r] + 1}, &readers_[r]);
            queue.lines[next.written[r] % kLines].store(static_cast<uint64_t>(start) << 32 | n);
            queue.written.store(next.written[r] + 1);
            wrote = true;
        });
        if (over) {
            next.rotation = rotation;
            ++next.sent;
            next.written[r] += wrote;
            next.without += !wrote;
            most_without = std::max(most_without, next.without);
            next.trace += " sent" + std::to_string(n);
        }
        push(std::move(next));
    }

    void read(const World& world, uint64_t r) {
        World next = world;
        memory = &next.memory;
        auto& queue = next.memory.queues[r];
        bool got = false, good = true;
        const bool over = test::step(next.readers[r], [&] {
            if (queue.written.load() == next.read[r]) return;
            const uint64_t line = queue.lines[next.read[r] % kLines].load();
            const uint64_t n = line & 0xffffffff, start = line >> 32;
            for (uint64_t i = 0; i < words_of(n); ++i) good &= next.memory.area[start + i].load() == n + 1;
            queue.consumed.store(next.read[r] + 1);
            got = true;
        });
        if (!good) return fail(next, "a part was written again before its reader had read it");
        if (over && !got) return;
        if (over) ++next.read[r], next.trace += " read" + std::to_string(r);
        push(std::move(next));
    }

    /// Checks a state in which all messages are read or their reader is known to be dead: no message holds a part of the area.
    void check_end(const World& world) {
        if (world.read[1] < world.written[1] || !world.readers[1].seen.empty()) return;
        if (world.dead ? !world.forgotten : world.read[0] < world.written[0] || !world.readers[0].seen.empty()) return;
        World end = world;
        memory = &end.memory;
        test::Operation look;
        bool over = false;
        uint32_t held = 0;
        while (!over) {
            over = test::step(look, [&] {
                end = world;
                memory = &end.memory;
                held = end.rotation.held();
            });
        }
        if (held > 0) return fail(end, "memory is held forever");
        ++all_sent;
    }

    const bool kills_;
    const char readers_[kReaders] = {};
};

TEST(OutboxModel, TwoReadersInEveryOrder) {
    Orders orders(false);
    test::explore(orders);
    EXPECT_GT(orders.most_without, 0u) << "the outbox was never full, so this case was not tested";
    EXPECT_GT(orders.all_sent, 0u);
}

TEST(OutboxModel, AReaderKilledAtAnyStep) {
    Orders orders(true);
    test::explore(orders);
    EXPECT_GT(orders.all_sent, 0u);
}

// --- The real outbox ---

/// Returns zeroed shared memory.
template <class T>
T* make_shared(size_t bytes = sizeof(T)) {
    void* place = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return place == MAP_FAILED ? nullptr : static_cast<T*>(place);
}

size_t resident_pages(const std::byte* memory) {
    std::vector<unsigned char> pages(kOutboxBytes / 4096);
    EXPECT_EQ(mincore(const_cast<std::byte*>(memory), kOutboxBytes, pages.data()), 0);
    size_t count = 0;
    for (const unsigned char page : pages) count += page & 1;
    return count;
}

std::byte byte_of(uint64_t number, uint32_t i) { return static_cast<std::byte>(number * 131 + i * 7 + i / 256); }

/// A sender with an outbox, and a ring to each reader.
struct Lines {
    explicit Lines(size_t readers) : memory(make_shared<std::byte>(kOutboxBytes)), outbox(memory), rings(readers) {
        for (auto& line : rings) {
            line.ring = make_shared<Ring>();
            line.reader.reset(*line.ring, memory);
            line.writer = RingWriter(*line.ring);
        }
    }
    ~Lines() {
        for (auto& line : rings) munmap(line.ring, sizeof(Ring));
        munmap(memory, kOutboxBytes);
    }
    struct OneWay {
        Ring* ring = nullptr;
        RingReader reader;
        RingWriter writer;
        std::deque<std::pair<uint64_t, uint32_t>> sent;
    };
    bool send(size_t to, uint64_t number, uint32_t bytes) {
        RingWriter& writer = rings[to].writer;
        if (!writer.has_line()) return false;
        std::byte* place = outbox.reserve(bytes, kOutboxBytes);
        if (!place) return false;
        place += number * 16 % (Outbox::spare(bytes) + 1u);
        for (uint32_t i = 0; i < bytes; ++i) place[i] = byte_of(number, i);
        writer.header().message.context = number;
        writer.commit(bytes, outbox.commit(writer.receipt(), &rings[to], place));
        rings[to].sent.emplace_back(number, bytes);
        return true;
    }
    /// Receives and checks a reader's oldest message.
    void expect(size_t at) {
        OneWay& line = rings[at];
        const auto [number, bytes] = line.sent.front();
        line.sent.pop_front();
        check(line.reader, number, bytes);
        line.reader.pop();
    }
    static void check(const RingReader& reader, uint64_t number, uint32_t bytes) {
        ASSERT_TRUE(reader.front());
        ASSERT_EQ(reader.front()->message.context, number);
        ASSERT_EQ(reader.front()->bytes, bytes);
        const std::byte* payload = reader.payload();
        for (uint32_t i = 0; i < bytes; ++i) ASSERT_EQ(payload[i], byte_of(number, i)) << "byte " << i << " of " << number;
    }

    std::byte* memory;
    Outbox outbox;
    std::vector<OneWay> rings;
};

/// Returns a random size over that of a line.
uint32_t any_size(std::mt19937& random) {
    return kInlineBytes + 1 + static_cast<uint32_t>(random() % (random() % 3 ? 4000 : kOutboxPayload - kInlineBytes));
}

TEST(Outbox, SeveralReadersReceiveAllMessages) {
    for (unsigned seed = 0; seed < 10 && !::testing::Test::HasFatalFailure(); ++seed) {
        Lines lines(3);
        std::mt19937 random(seed);
        uint64_t number = 0;
        for (int step = 0; step < 6000 && !::testing::Test::HasFatalFailure(); ++step) {
            const size_t to = random() % lines.rings.size();
            // Each reader in turn does not read for 500 steps.
            const bool behind = step / 500 % 4 == static_cast<int>(to);
            if (random() % 2)
                number += lines.send(to, number, any_size(random));
            else if (!behind && !lines.rings[to].sent.empty())
                lines.expect(to);
        }
        EXPECT_GT(number, 1000u);
    }
}

TEST(Outbox, IsExhaustedByIdleReadersButNotForever) {
    Lines lines(20);
    uint64_t number = 0;
    size_t held = 0;
    // Fill the outbox with unread messages of all readers but the last.
    for (int round = 0; round < 30; ++round)
        for (size_t to = 0; to + 1 < lines.rings.size(); ++to)
            if (lines.send(to, number, kOutboxPayload)) ++number, held += kOutboxPayload;
    EXPECT_GT(held, kOutboxBytes * 3 / 4);
    for (int i = 0; i < 100; ++i)
        EXPECT_FALSE(lines.send(19, number, kOutboxPayload)) << "memory of an unread message was reused";
    // Reader 7 reads its messages. The last reader then gets the memory that it needs, as often as it reads.
    while (!lines.rings[7].sent.empty()) lines.expect(7);
    lines.rings[7].reader.retire();
    for (int i = 0; i < 1000; ++i) {
        bool sent = false;
        for (int turn = 0; turn < 20 && !sent; ++turn) sent = lines.send(19, number, 8192);
        ASSERT_TRUE(sent) << "message " << i;
        ++number;
        lines.expect(19);
        lines.rings[19].reader.retire();
    }
    // The messages of the other readers are intact.
    for (size_t at = 0; at < 19; ++at)
        while (!lines.rings[at].sent.empty() && !HasFatalFailure()) lines.expect(at);
}

TEST(Outbox, MemoryHeldByADeadReaderIsReleased) {
    Lines lines(2);
    uint64_t number = 0;
    while (lines.send(0, number, kOutboxPayload)) ++number;
    EXPECT_TRUE(lines.outbox.held_by(&lines.rings[0]));
    EXPECT_FALSE(lines.outbox.held_by(&lines.rings[1]));
    EXPECT_GE(number, kOutboxBytes / kOutboxPayload * 3 / 4);
    lines.outbox.forget(&lines.rings[0]);
    EXPECT_FALSE(lines.outbox.held_by(&lines.rings[0]));
    for (uint64_t i = 0; i < kOutboxBytes / kOutboxPayload - 1; ++i)
        ASSERT_TRUE(lines.send(1, number + i, kOutboxPayload)) << i;
}

// The ring's owner assigns the slot to another sender: everything that the former one sent on it counts as read.
TEST(Outbox, AReassignedRingHoldsNoMemory) {
    Lines lines(1);
    for (uint64_t number = 0; number < 20; ++number) ASSERT_TRUE(lines.send(0, number, 2000));
    for (int i = 0; i < 17; ++i) lines.expect(0);
    EXPECT_TRUE(lines.outbox.held_by(&lines.rings[0]));
    lines.rings[0].reader.reset(*lines.rings[0].ring, lines.memory);
    EXPECT_FALSE(lines.outbox.held_by(&lines.rings[0]));
    lines.rings[0].sent.clear();
    lines.rings[0].writer = RingWriter(*lines.rings[0].ring);
    EXPECT_FALSE(lines.rings[0].reader.front()) << "the reader sees a packet of the ring's former writer";
    for (uint64_t number = 0; number < 300; ++number) {
        ASSERT_TRUE(lines.send(0, number, 2000));
        lines.expect(0);
    }
}

TEST(Outbox, ReturnsPagesToTheKernelWhenIdle) {
    Lines lines(2);
    EXPECT_EQ(resident_pages(lines.memory), 0u);
    uint64_t number = 0;
    for (int i = 0; i < 400; ++i) {
        ASSERT_TRUE(lines.send(0, number++, 8192));
        lines.expect(0);
    }
    EXPECT_EQ(resident_pages(lines.memory), kOutboxBytes / 4096);
    ASSERT_TRUE(lines.send(1, number++, 10000));
    lines.outbox.release_idle();
    EXPECT_EQ(resident_pages(lines.memory), kOutboxBytes / 4096) << "the outbox keeps its pages, because it was used recently";
    lines.rings[0].reader.retire();
    lines.outbox.release_idle();
    EXPECT_LE(resident_pages(lines.memory), 4u);
    lines.expect(1);  // the unread message of reader 1 is still in its memory
    lines.rings[1].reader.retire();
    lines.outbox.release_unused();
    EXPECT_EQ(resident_pages(lines.memory), 0u);
    for (int i = 0; i < 400; ++i) {
        ASSERT_TRUE(lines.send(0, number++, 8192));
        lines.expect(0);
    }
}

TEST(Outbox, APayloadIsAlignedWithItsSource) {
    alignas(64) std::byte source[64], memory[64 + 64];
    for (size_t at = 0; at < 64; ++at)
        for (size_t from = 0; from < 64; from += 16) {
            transport::PacketSlot slot{.payload = memory + from, .spare = Outbox::spare(16384)};
            slot.align_with(source + at);
            EXPECT_GE(slot.payload, memory + from);
            EXPECT_LE(slot.payload, memory + from + Outbox::spare(16384));
            EXPECT_EQ(reinterpret_cast<uintptr_t>(slot.payload) % 64, at / 16 * 16);
            EXPECT_EQ(slot.spare, 0);  // once only
            transport::PacketSlot without{.payload = memory + from, .spare = Outbox::spare(100)};
            without.align_with(source + at);
            EXPECT_EQ(without.payload, memory + from);
        }
}

/// Readers whose counts the test sets.
struct ReaderGroup final : Borrowers {
    void update_back() override {}
};

TEST(Lending, PayloadsOfAGroupRotateInAWindowWhileTheReadersKeepUp) {
    constexpr uint32_t kWindow = 512u << 10, kBytes = 60000;
    void* const area = mmap(nullptr, kOutboxBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(area, MAP_FAILED);
    auto* const memory = static_cast<std::byte*>(area);
    Lending lending(memory);
    ReaderGroup group;
    uint32_t place = 0;
    uint64_t number = 0;
    for (int i = 0; i < 100; ++i) {
        std::byte* const room = lending.allocate(group, kBytes, ++number, kWindow, place);
        ASSERT_NE(room, nullptr);
        EXPECT_LE(room + kBytes, memory + kWindow);
        EXPECT_EQ(memory + place, room);
        group.set_back(number);
    }
    int beyond = 0;  // a reader that stops makes nobody wait while the outbox has room
    for (int i = 0; i < 30; ++i) beyond += lending.allocate(group, kBytes, ++number, kWindow, place) > memory + kWindow;
    EXPECT_GE(beyond, 20);
    group.set_back(number);
    const std::byte* const room = lending.allocate(group, kBytes, ++number, kWindow, place);
    EXPECT_LT(room, memory + kWindow);
    munmap(area, kOutboxBytes);
}

TEST(Outbox, AnOffsetNeverLeadsOutside) {
    std::vector<std::byte> memory(1);
    for (const uint32_t offset : {0u, 1u, static_cast<uint32_t>(kOutboxBytes), ~0u}) {
        std::byte place[sizeof(OutboxPlace)];
        std::memcpy(place, &offset, sizeof offset);
        const std::byte* payload = payload_in(memory.data(), place, kOutboxPayload);
        EXPECT_GE(payload, memory.data());
        EXPECT_LE(payload + kOutboxPayload, memory.data() + kOutboxBytes);
    }
}

// The thread sanitizer sees only threads, so one plays each process.
TEST(Outbox, BetweenThreads) {
    Lines lines(2);
    constexpr uint64_t kCount = 20000;
    const auto consume = [&](size_t at) {
        RingReader& reader = lines.rings[at].reader;
        std::mt19937 random(static_cast<unsigned>(at));
        for (uint64_t number = 0; number < kCount && !::testing::Test::HasFatalFailure(); ++number) {
            while (!reader.front() && !::testing::Test::HasFailure()) sched_yield();
            lines.check(reader, number, any_size(random));
            reader.pop();
        }
    };
    std::thread first(consume, 0), second(consume, 1);
    std::mt19937 random[2] = {std::mt19937(0), std::mt19937(1)};
    for (uint64_t number = 0; number < kCount; ++number)
        for (size_t to = 0; to < 2; ++to) {
            const uint32_t bytes = any_size(random[to]);
            while (!lines.send(to, number, bytes) && !HasFailure()) sched_yield();
        }
    first.join();
    second.join();
}

}  // namespace
}  // namespace starling::shm
