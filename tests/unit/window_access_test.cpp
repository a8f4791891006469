// Memory that other processes read, write and update, on one host and between hosts.
#include "window/access.h"

#include <numeric>

#include "message_team.h"

namespace {

using namespace starling;
using namespace starling::message::test;
using starling::window::Access;
using starling::window::Exposure;
using starling::window::Update;

/// What the processes tell each other besides: where the exposures are.
struct Table {
    Exposure of[4];
};

Table& shared_table() {
    static Table* table =
        static_cast<Table*>(mmap(nullptr, sizeof(Table), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    return *table;
}

void finish(Access& access) { progress::wait(access); }

int put(Node& node, int to, uint64_t offset, const void* data, uint64_t bytes) {
    Access access;
    window::start_put(access, node.peer(to), shared_table().of[to], offset, data, bytes);
    finish(access);
    return access.outcome.error;
}
int get(Node& node, int from, uint64_t offset, void* data, uint64_t bytes) {
    Access access;
    window::start_get(access, node.peer(from), shared_table().of[from], offset, data, bytes);
    finish(access);
    return access.outcome.error;
}
uint64_t update(Node& node, int at, uint64_t offset, uint8_t width, Update what, uint64_t operand, uint64_t compare = 0) {
    Access access;
    window::start_update(access, node.peer(at), shared_table().of[at], offset, width, what, operand, compare);
    finish(access);
    EXPECT_EQ(access.outcome.error, MPI_SUCCESS) << failure_text();
    return access.old;
}

/// Runs `body` in three processes, each of which has exposed `bytes`.
void run(const std::vector<int>& hosts, uint64_t bytes, const Settings& settings,
         const std::function<void(Node&, std::vector<std::byte>&)>& body) {
    shared_table() = {};
    Team team(Placement{std::vector<int>(hosts.size(), 0), hosts});
    team.start(settings, [&](Node& node) {
        std::vector<std::byte> memory(bytes);
        shared_table().of[node.rank] = window::expose(memory.data(), bytes);
        node.barrier(0);
        body(node, memory);
        node.barrier(7);
    });
    team.expect_success();
}

std::vector<std::byte> pattern(uint64_t bytes, int seed) {
    std::vector<std::byte> data(bytes);
    for (uint64_t i = 0; i < bytes; ++i)
        data[i] = static_cast<std::byte>((i * 7 + i / 255 + static_cast<uint64_t>(seed)) & 0xff);
    return data;
}

void put_and_get(Node& node, std::vector<std::byte>& memory) {
    const uint64_t share = memory.size() / 3;
    const int next = (node.rank + 1) % 3;
    for (const uint64_t bytes : {uint64_t{0}, uint64_t{1}, uint64_t{1000}, uint64_t{100000}, share}) {
        const auto data = pattern(bytes, node.rank + static_cast<int>(bytes));
        std::vector<std::byte> back(bytes);
        ASSERT_EQ(put(node, next, static_cast<uint64_t>(node.rank) * share, data.data(), bytes), MPI_SUCCESS);
        ASSERT_EQ(get(node, next, static_cast<uint64_t>(node.rank) * share, back.data(), bytes), MPI_SUCCESS);
        ASSERT_EQ(back, data);
    }
    node.barrier(1);
    const int before = (node.rank + 2) % 3;
    const auto theirs = pattern(share, before + static_cast<int>(share));
    EXPECT_TRUE(
        std::equal(theirs.begin(), theirs.end(), memory.begin() + static_cast<int64_t>(before) * static_cast<int64_t>(share)));
}

TEST(Segment, PutAndGetOnOneHost) { run({0, 0, 0}, 900000, {}, put_and_get); }
TEST(Segment, PutAndGetBetweenHosts) { run({0, 1, 2}, 900000, {}, put_and_get); }
TEST(Segment, PutAndGetOnTheBasePath) { run({0, 0, 1}, 300000, {{"STARLING_MAX_DIRECT", "0"}}, put_and_get); }

// Everyone adds to the same words, the owner too, by its own instructions: nothing is lost.
void count_together(Node& node, std::vector<std::byte>& memory) {
    constexpr int kTimes = 300;
    auto* own = reinterpret_cast<uint64_t*>(memory.data());
    uint64_t seen = 0;
    for (int i = 0; i < kTimes; ++i) {
        if (node.rank == 0) {
            __atomic_fetch_add(own, 1, __ATOMIC_SEQ_CST);
            progress::poll();
        } else {
            const uint64_t old = update(node, 0, 0, 8, Update::add, 1);
            EXPECT_GE(old, seen);
            seen = old + 1;
            update(node, 0, 12, 4, Update::add, 3);
        }
    }
    node.barrier(1);
    if (node.rank == 0) {
        EXPECT_EQ(own[0], 3u * kTimes);
        EXPECT_EQ(reinterpret_cast<uint32_t*>(memory.data())[2], 0u);
        EXPECT_EQ(reinterpret_cast<uint32_t*>(memory.data())[3], 2u * 3 * kTimes);
    }
}

TEST(Segment, UpdatesLoseNothingOnOneHost) { run({0, 0, 0}, 64, {}, count_together); }
TEST(Segment, UpdatesLoseNothingBetweenHosts) { run({0, 1, 1}, 64, {}, count_together); }

TEST(Segment, EveryUpdateDoesWhatItSays) {
    run({0, 1, 0}, 64, {}, [](Node& node, std::vector<std::byte>&) {
        if (node.rank != 1) return;
        EXPECT_EQ(update(node, 0, 8, 8, Update::swap, 12), 0u);
        EXPECT_EQ(update(node, 0, 8, 8, Update::bit_or, 3), 12u);
        EXPECT_EQ(update(node, 0, 8, 8, Update::bit_and, 6), 15u);
        EXPECT_EQ(update(node, 0, 8, 8, Update::bit_xor, 5), 6u);
        EXPECT_EQ(update(node, 0, 8, 8, Update::compare_swap, 100, 4), 3u);
        EXPECT_EQ(update(node, 0, 8, 8, Update::compare_swap, static_cast<uint64_t>(-7), 3), 3u);
        EXPECT_EQ(update(node, 0, 8, 8, Update::most, 5), static_cast<uint64_t>(-7));
        EXPECT_EQ(update(node, 0, 8, 8, Update::least, static_cast<uint64_t>(-9)), 5u);
        EXPECT_EQ(update(node, 0, 8, 8, Update::fetch, 77), static_cast<uint64_t>(-9));
        EXPECT_EQ(update(node, 0, 8, 8, Update::fetch, 0), static_cast<uint64_t>(-9));
    });
}

TEST(Segment, RefusesWhatIsOutsideOrWithdrawn) {
    run({0, 1, 0}, 4096, {}, [](Node& node, std::vector<std::byte>&) {
        char bytes[64] = {};
        if (node.rank == 1) {
            EXPECT_EQ(put(node, 0, 4090, bytes, 7), MPI_ERR_RMA_RANGE);
            EXPECT_EQ(put(node, 0, ~uint64_t{0}, bytes, 7), MPI_ERR_RMA_RANGE);
            // The owner does not believe what others say of its sizes.
            shared_table().of[0].bytes = 1 << 20;
            EXPECT_EQ(put(node, 0, 5000, bytes, 7), MPI_ERR_RMA_RANGE);
            EXPECT_EQ(get(node, 0, 4090, bytes, 7), MPI_ERR_RMA_RANGE);
            Access odd;
            window::start_update(odd, node.peer(0), shared_table().of[0], 3, 8, Update::add, 1);
            finish(odd);
            EXPECT_EQ(odd.outcome.error, MPI_ERR_RMA_RANGE);
            EXPECT_EQ(get(node, 0, 0, bytes, 64), MPI_SUCCESS);
            shared_table().of[0].key ^= 1;
            EXPECT_EQ(get(node, 0, 0, bytes, 64), MPI_ERR_RMA_RANGE);
            shared_table().of[0].key ^= 1;
        }
        node.barrier(1);
        if (node.rank == 0) window::withdraw(shared_table().of[0]);
        node.barrier(2);
        if (node.rank != 1) return;
        EXPECT_EQ(get(node, 0, 0, bytes, 64), MPI_ERR_RMA_RANGE);
    });
}

TEST(Segment, ADeadOwnerEndsTheAccess) {
    shared_table() = {};
    Team team(Placement{{0, 1}, {0, 0}});
    team.start({}, [](Node& node) {
        std::vector<std::byte> memory(64);
        shared_table().of[node.rank] = window::expose(memory.data(), 64);
        node.barrier(0);
        if (node.rank == 1) {
            node.board.stage.store(1);
            for (;;) pause();  // never answers
        }
        // In the barrier it would yet have.
        while (node.board.stage.load() != 1) usleep(100);
        EXPECT_EQ(get(node, 1, 0, memory.data(), 64), MPI_ERR_PROC_ABORTED);
    });
    while (team.board().stage.load() != 1) usleep(1000);
    usleep(20000);
    team.kill_process(1);
    team.expect_success(0);
}

}  // namespace
