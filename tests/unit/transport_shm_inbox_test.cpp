// A model of the inbox with few cells, in every order of steps, with a producer killed at any step. Then the real inbox between processes
// that are killed.
#include "transport/shm/inbox.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "steps.h"

namespace starling::shm {
namespace {

// --- The model: every order of steps ---

using test::Operation;
using test::step;
using test::Word;

template <size_t kCells>
struct TinyInbox {
    struct Cell {
        Word state, packet;
    };
    Word tail, head;
    Cell cells[kCells];
};

constexpr uint32_t kFirstPid = 100;
bool killed[4];  ///< whether each producer is killed, in the model state whose step runs

template <size_t kCells, int kProducers>
class Model {
  public:
    Model(int messages, bool kills) : messages_(messages), kills_(kills) {}

    void explore() {
        add(World{}, 0);
        for (size_t i = 0; i < worlds_.size() && !::testing::Test::HasFailure(); ++i) expand(i);
        check_that_all_can_end();
    }
    size_t size() const { return worlds_.size(); }

  private:
    struct World {
        TinyInbox<kCells> inbox;
        Operation producers[kProducers], consumer;
        int published[kProducers] = {};
        bool dead[kProducers] = {};
        uint64_t head = 0;
        int last[kProducers] = {};  ///< number of the newest packet received from each producer

        std::string key() const {
            test::Key key;
            key.put(inbox.tail.value), key.put(inbox.head.value);
            for (const auto& cell : inbox.cells) key.put(cell.state.value), key.put(cell.packet.value);
            for (int p = 0; p < kProducers; ++p) {
                key.put(producers[p]);
                key.put(static_cast<uint64_t>(published[p] << 16 | last[p] << 1 | dead[p]));
            }
            key.put(consumer);
            key.put(head);
            return key.text;
        }
    };

    void add(World&& world, size_t from) {
        const auto [place, is_new] = numbers_.try_emplace(world.key(), worlds_.size());
        if (is_new) {
            worlds_.push_back(std::move(world));
            parents_.emplace_back();
        }
        parents_[place->second].push_back(static_cast<uint32_t>(from));
    }

    void expand(size_t from) {
        for (int p = 0; p < kProducers; ++p) {
            if (worlds_[from].dead[p] || worlds_[from].published[p] == messages_) continue;
            World next = worlds_[from];
            produce(next, p);
            add(std::move(next), from);
            if (kills_ && p == 0) {
                World without = worlds_[from];
                without.dead[p] = true;
                add(std::move(without), from);
            }
        }
        World next = worlds_[from];
        consume(next);
        add(std::move(next), from);
    }

    void produce(World& world, int p) {
        bool full = false;
        const bool over = step(world.producers[p], [&] {
            auto* cell = claim_cell(world.inbox, kFirstPid + p);
            full = !cell;
            if (full) return;
            cell->packet.store(packet(p, world.published[p] + 1));
            publish_cell(*cell);
        });
        if (over && !full) ++world.published[p];
    }

    void consume(World& world) {
        std::copy(world.dead, world.dead + kProducers, killed);
        // The reader advances the head that it contains; the model's state keeps the old head until the operation ends.
        BasicInboxReader<TinyInbox<kCells>> reader(world.inbox, world.head);
        uint64_t taken = 0;
        bool passed = false;
        const bool over = step(world.consumer, [&] {
            if (auto* cell = reader.front()) {
                taken = cell->packet.load();
                reader.pop();
                passed = true;
            } else {
                passed = reader.skip_dead([](pid_t pid) { return killed[pid - static_cast<pid_t>(kFirstPid)]; });
            }
        });
        if (!over) return;
        if (passed) ++world.head;
        if (taken) receive(world, taken);
    }

    static uint64_t packet(int p, int number) { return static_cast<uint64_t>(p + 1) << 8 | static_cast<unsigned>(number); }

    void receive(World& world, uint64_t what) {
        const int p = static_cast<int>(what >> 8) - 1, number = static_cast<int>(what & 0xff);
        ASSERT_EQ(number, world.last[p] + 1) << "lost, doubled or out of order, from producer " << p;
        world.last[p] = number;
    }

    bool at_end(const World& world) const {
        for (int p = 0; p < kProducers; ++p) {
            if (!world.dead[p] && world.published[p] < messages_) return false;
            // A packet is received even if its producer was killed right after publishing it, before the model counted it.
            if (world.last[p] < world.published[p]) return false;
        }
        for (const auto& cell : world.inbox.cells)
            if (cell_state::phase_of(cell.state.value) != cell_state::kFree) return false;
        return true;
    }

    // Checks that from every state the living processes can still end with everything received: no process hangs.
    void check_that_all_can_end() {
        std::vector<bool> can(worlds_.size());
        std::vector<uint32_t> todo;
        for (size_t i = 0; i < worlds_.size(); ++i)
            if (at_end(worlds_[i])) can[i] = true, todo.push_back(static_cast<uint32_t>(i));
        while (!todo.empty()) {
            const uint32_t i = todo.back();
            todo.pop_back();
            for (const uint32_t from : parents_[i])
                if (!can[from]) can[from] = true, todo.push_back(from);
        }
        size_t stuck = 0;
        for (const bool good : can) stuck += !good;
        EXPECT_EQ(stuck, 0u) << "of " << worlds_.size() << " states";
    }

    const int messages_;
    const bool kills_;
    std::vector<World> worlds_;
    std::vector<std::vector<uint32_t>> parents_;
    std::unordered_map<std::string, size_t> numbers_;
};

template <size_t kCells, int kProducers>
void explore(int messages, bool kills) {
    Model<kCells, kProducers> model(messages, kills);
    model.explore();
    ::testing::Test::RecordProperty("states", static_cast<int>(model.size()));
    EXPECT_GT(model.size(), 1000u);
}

TEST(InboxModel, TwoProducersInEveryOrder) { explore<2, 2>(2, false); }

TEST(InboxModel, ThreeProducersAndOneCellInEveryOrder) { explore<1, 3>(1, false); }

TEST(InboxModel, AProducerKilledAtAnyStep) { explore<1, 2>(2, true); }

TEST(InboxModel, AProducerKilledAtAnyStepAmongTwoCells) { explore<2, 2>(1, true); }

// --- The real inbox ---

/// Memory that producers and consumer share.
struct Shared {
    Inbox inbox;
    std::atomic<uint64_t> published[16];  ///< number of packets that each producer has surely published
};

Shared* make_shared_memory() {
    void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? nullptr : static_cast<Shared*>(memory);
}

uint64_t word_of(uint64_t producer, uint64_t number, uint64_t i) { return producer << 56 ^ number << 16 ^ i; }

[[noreturn]] void produce_for_ever(Shared& shared, uint32_t producer) {
    for (uint64_t number = 1;; ++number) {
        Cell* cell;
        while (!(cell = claim(shared.inbox, static_cast<uint32_t>(getpid())))) sched_yield();
        cell->sender.rank = producer;
        cell->header.message.context = number;
        cell->header.bytes = static_cast<uint32_t>(number % (Cell::kPayload / 8) * 8);
        for (uint64_t i = 0; i < cell->header.bytes / 8; ++i) {
            const uint64_t word = word_of(producer, number, i);
            std::memcpy(cell->payload + i * 8, &word, 8);
        }
        publish(*cell);
        shared.published[producer].store(number);
    }
}

struct Consumer {
    explicit Consumer(Inbox& inbox) : reader(inbox) {}
    InboxReader reader;
    std::map<uint32_t, uint64_t> last;

    bool take() {
        const Cell* cell = reader.front();
        if (!cell) return reader.skip_dead();
        const uint32_t producer = cell->sender.rank;
        const uint64_t number = cell->header.message.context;
        EXPECT_EQ(number, last[producer] + 1) << "lost, doubled or out of order";
        last[producer] = number;
        for (uint64_t i = 0; i < cell->header.bytes / 8; ++i) {
            uint64_t word;
            std::memcpy(&word, cell->payload + i * 8, 8);
            if (word != word_of(producer, number, i)) {
                ADD_FAILURE() << "torn packet";
                break;
            }
        }
        reader.pop();
        return true;
    }
};

TEST(Inbox, NothingIsLostWhenProducersAreKilled) {
    Shared* shared = make_shared_memory();
    ASSERT_TRUE(shared);
    Consumer consumer(shared->inbox);
    std::mt19937 random(7);
    pid_t pids[16] = {};
    uint32_t started = 0, waited = 0;
    auto last_kill = std::chrono::steady_clock::now();
    for (int step = 0; step < 20 && !HasFailure();) {
        for (int i = 0; i < 200; ++i) consumer.take();
        const auto now = std::chrono::steady_clock::now();
        if (now - last_kill < std::chrono::milliseconds(100)) continue;
        last_kill = now;
        ++step;
        if (started < 16) {
            if (const pid_t pid = fork(); pid == 0)
                produce_for_ever(*shared, started);
            else
                pids[started++] = pid;
        }
        // Reap only half of the killed producers at once: a zombie must count as dead too.
        if (started > 3 + waited) {
            kill(pids[waited], SIGKILL);
            if (random() % 2) waitpid(pids[waited], nullptr, 0), pids[waited] = 0;
            ++waited;
        }
    }
    for (uint32_t i = 0; i < started; ++i) {
        if (!pids[i]) continue;
        siginfo_t info;
        kill(pids[i], SIGKILL);
        EXPECT_EQ(waitid(P_PID, static_cast<id_t>(pids[i]), &info, WEXITED | WNOWAIT), 0);  // it stays a zombie
    }
    // All published packets must arrive, and the inbox must be empty then.
    for (int quiet = 0; quiet < 100; ++quiet) {
        while (consumer.take()) quiet = 0;
        usleep(1000);
    }
    uint64_t total = 0;
    for (uint32_t i = 0; i < started; ++i) {
        EXPECT_GE(consumer.last[i], shared->published[i].load());
        EXPECT_LE(consumer.last[i], shared->published[i].load() + 1);
        total += consumer.last[i];
    }
    EXPECT_GT(total, 0u);
    for (const Cell& cell : shared->inbox.cells) EXPECT_EQ(cell_state::phase_of(cell.state.load()), cell_state::kFree);
    for (uint32_t i = 0; i < started; ++i)
        if (pids[i]) waitpid(pids[i], nullptr, 0);
    munmap(shared, sizeof(Shared));
}

TEST(Inbox, AFullInboxReportsIt) {
    Shared* shared = make_shared_memory();
    ASSERT_TRUE(shared);
    InboxReader reader(shared->inbox);
    EXPECT_EQ(reader.front(), nullptr);
    for (uint32_t lap = 0; lap < 3; ++lap) {
        for (uint32_t i = 0; i < kInboxCells; ++i) {
            Cell* cell = claim(shared->inbox, 1);
            ASSERT_TRUE(cell);
            cell->header.message.context = i;
            publish(*cell);
        }
        EXPECT_EQ(claim(shared->inbox, 1), nullptr);
        for (uint32_t i = 0; i < kInboxCells; ++i) {
            ASSERT_TRUE(reader.front());
            EXPECT_EQ(reader.front()->header.message.context, i);
            reader.pop();
        }
    }
    munmap(shared, sizeof(Shared));
}

TEST(Inbox, ALivingClaimantIsAwaited) {
    Shared* shared = make_shared_memory();
    ASSERT_TRUE(shared);
    InboxReader reader(shared->inbox);
    Cell* cell = claim(shared->inbox, static_cast<uint32_t>(getpid()));
    ASSERT_TRUE(cell);
    EXPECT_EQ(reader.front(), nullptr);
    EXPECT_FALSE(reader.skip_dead());
    publish(*cell);
    EXPECT_EQ(reader.front(), cell);
    EXPECT_FALSE(reader.skip_dead());
    reader.pop();
    EXPECT_FALSE(reader.skip_dead());
    munmap(shared, sizeof(Shared));
}

// The thread sanitizer sees only threads, so they play the processes.
TEST(Inbox, ConcurrentProducerThreads) {
    Shared* shared = make_shared_memory();
    ASSERT_TRUE(shared);
    constexpr int kProducers = 3;
    constexpr uint64_t kEach = 20000;
    std::vector<std::thread> producers;
    for (uint32_t p = 0; p < kProducers; ++p)
        producers.emplace_back([shared, p] {
            for (uint64_t number = 1; number <= kEach; ++number) {
                Cell* cell;
                while (!(cell = claim(shared->inbox, static_cast<uint32_t>(getpid())))) sched_yield();
                cell->sender.rank = p;
                cell->header.message.context = number;
                cell->header.bytes = 0;
                publish(*cell);
            }
        });
    Consumer consumer(shared->inbox);
    for (uint64_t n = 0; n < kProducers * kEach;) {
        if (consumer.reader.front())
            consumer.take(), ++n;
        else
            sched_yield();
    }
    for (auto& producer : producers) producer.join();
    EXPECT_EQ(consumer.reader.front(), nullptr);
    munmap(shared, sizeof(Shared));
}

}  // namespace
}  // namespace starling::shm
