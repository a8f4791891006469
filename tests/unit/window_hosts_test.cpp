// Locks of a window whose processes are on several hosts, while one of them sends false lock packets. Exclusive locks still have one
// holder, no process waits forever, and no process's memory fills up. Also accesses of many packets.
#include <array>
#include <random>

#include "base/counter_start.h"
#include "comm/comm.h"
#include "comm/errhandler.h"
#include "comm/group.h"
#include "message_team.h"
#include "rma/target_side.h"
#include "window/epoch.h"
#include "window/operation.h"
#include "window/window.h"

namespace starling::message::test {
namespace {

using window::LockHeld;
using window::Window;

Window* make_window(Node& node, uint64_t context = 0x5550, MPI_Aint bytes = 8) {
    rma::listen();
    comm::GroupBuilder builder;
    for (const link::Process& member : node.everyone.members) builder.add(member);
    comm::Comm* comm = comm::make_intracomm(context, builder.build(), node.rank, comm::errors_return());
    Window* window = nullptr;
    EXPECT_EQ(window::make(*comm, {.flavor = MPI_WIN_FLAVOR_ALLOCATE, .bytes = bytes, .disp_unit = 8}, window), MPI_SUCCESS)
        << failure_text();
    return window;
}

/// The lock packet of window/lock.cpp, which the test sends by itself.
struct LockMessage {
    uint64_t context;
    uint32_t number;
    uint32_t what;
};
enum : uint32_t { kAskShared = 1, kAskExclusive, kGrant, kGiveBack, kLater, kNever };

void say(Node& node, int to, const LockMessage& message, uint32_t bytes = sizeof(LockMessage)) {
    link::send_control(node.peer(to), packet::PacketKind::window_lock, &message, bytes);
}

/// Locks rank 0's window exclusively, `times` times; meanwhile no other process changes the counter.
void lock_and_look(Node& node, Window& window, int times) {
    std::atomic<int>& inside = node.board.stage;
    for (int i = 0; i < times; ++i) {
        const bool exclusive = (i + node.rank) % 3 != 0;
        const int mine = exclusive ? 1000 : 1;
        ASSERT_EQ(window::lock(window, exclusive ? LockHeld::exclusive : LockHeld::shared, 0, 0), MPI_SUCCESS)
            << failure_text();
        const int before = inside.fetch_add(mine);
        EXPECT_TRUE(exclusive ? before == 0 : before < 1000) << before;
        progress::test();
        inside.fetch_sub(mine);
        ASSERT_EQ(window::unlock(window, 0), MPI_SUCCESS) << failure_text();
    }
}

/// Sends false lock packets to random processes. Correct lock requests are not among them, because the lock would have to be awaited.
void lie(Node& node, Window& window, int times) {
    std::mt19937 random(7);
    const uint64_t context = window.comm->context();
    for (int i = 0; i < times; ++i) {
        const int to = static_cast<int>(random() % static_cast<unsigned>(node.size - 1));
        const bool elsewhere = random() % 4 == 0;  // whether to name the context of a window that does not exist
        const auto number = kCounterStart + static_cast<uint32_t>(random() % 8);
        const uint32_t what = std::array<uint32_t, 6>{kGrant, kGiveBack, kLater, kNever, 0, 77}[random() % 6];
        say(node, to, {elsewhere ? random() * 16ull : context, number, elsewhere ? kAskExclusive : what});
        if (random() % 8 == 0) say(node, to, {context, number, what}, random() % sizeof(LockMessage));
        progress::test();
    }
}

void locks_among_lies(const Settings& settings) {
    Team team(Placement{{0, 0, 0, 0, 0}, {0, 0, 1, 1, 2}});
    team.start(settings, [](Node& node) {
        Window* const window = make_window(node);
        ASSERT_NE(window, nullptr);
        const bool honest = node.rank != node.size - 1;
        honest ? lock_and_look(node, *window, 200) : lie(node, *window, 2000);
        node.barrier(0);
        // The process with false packets now also locks correctly, but sends each packet twice, and once more later.
        const uint64_t context = window->comm->context();
        for (uint32_t turn = 1; !honest && turn <= 100; ++turn) {
            const uint32_t number = kCounterStart + turn;
            ASSERT_EQ(window::lock(*window, LockHeld::exclusive, 0, 0), MPI_SUCCESS) << failure_text();
            EXPECT_EQ(node.board.stage.fetch_add(1000), 0);
            say(node, 0, {context, number, kAskExclusive});
            progress::test();
            node.board.stage.fetch_sub(1000);
            ASSERT_EQ(window::unlock(*window, 0), MPI_SUCCESS) << failure_text();
            for (const uint32_t what : {kGiveBack, kAskExclusive, kGiveBack}) say(node, 0, {context, number, what});
        }
        if (honest) lock_and_look(node, *window, 200);
        node.barrier(1);
        EXPECT_EQ(node.board.stage.load(), 0);
        EXPECT_EQ(window::free(*window), MPI_SUCCESS) << failure_text();
        node.barrier(2);
    });
    team.expect_success();
}

TEST(WindowOverHosts, LocksDespiteFalseLockPackets) { locks_among_lies({}); }

TEST(WindowOverHosts, LocksDespiteFalseLockPacketsWithAProgressThread) { locks_among_lies({{"STARLING_WAIT", "thread"}}); }

TEST(WindowOverHosts, ALockRequestBeforeTheWindowExistsIsServedLater) {
    Team team(Placement{{0, 0}, {0, 1}});
    team.start({}, [](Node& node) {
        // Request locks of windows that will never exist, more than rank 0 stores. Rank 0 refuses all of them, the stored ones when no
        // window is being created; afterwards it can store others.
        for (uint32_t i = 0; node.rank == 1 && i < 100; ++i) {
            say(node, 0, {0x100000ull + i * 16, kCounterStart + 1, kAskExclusive});
            progress::test();
        }
        Window* const window = make_window(node);
        ASSERT_NE(window, nullptr);
        for (uint32_t number = 0; node.rank == 1 && number < 40; ++number)
            say(node, 0, {0x200000ull + number * 16, kCounterStart + 1, kAskShared});
        Window* const second = make_window(node, 0x6660);
        ASSERT_NE(second, nullptr);
        for (Window* each : {window, second}) {
            EXPECT_EQ(window::lock(*each, LockHeld::exclusive, 1 - node.rank, 0), MPI_SUCCESS) << failure_text();
            EXPECT_EQ(window::unlock(*each, 1 - node.rank), MPI_SUCCESS) << failure_text();
        }
        EXPECT_EQ(window::free(*second), MPI_SUCCESS);
        EXPECT_EQ(window::free(*window), MPI_SUCCESS);
        node.barrier(0);
    });
    team.expect_success();
}

// After a death one process may have the window, and another, whose creation failed, may not.
TEST(WindowOverHosts, ALockAtATargetWithoutTheWindowIsRefused) {
    Team team(Placement{{0, 0}, {0, 1}});
    team.start({}, [](Node& node) {
        Window* const window = make_window(node);
        ASSERT_NE(window, nullptr);
        auto& here = const_cast<std::vector<Window*>&>(window::windows());
        std::vector<Window*> none;
        if (node.rank == 0) here.swap(none);
        node.barrier(0);
        const int expected = node.rank == 1 ? MPI_ERR_PROC_ABORTED : MPI_SUCCESS;
        EXPECT_EQ(window::lock(*window, LockHeld::exclusive, 0, 0), expected);
        if (expected == MPI_SUCCESS) window::unlock(*window, 0);
        node.barrier(1);
        if (node.rank == 0) here.swap(none);
        EXPECT_EQ(window::free(*window), MPI_SUCCESS);
        node.barrier(2);
    });
    team.expect_success();
}

/// number of words that each rank accesses in rank 0's memory: many packets, the last of which is not full
constexpr int64_t kWords = 50'001;

void access(Window& window, rma::AccessOperation what, std::vector<uint64_t>& words, int64_t at) {
    window::WindowOperation asked;
    asked.what = what;
    (what == rma::AccessOperation::get ? asked.result : asked.origin) = {words.data(), static_cast<int64_t>(words.size()),
                                                                         &datatype::predefined(MPI_UINT64_T)};
    asked.disp = at;
    asked.count = static_cast<int64_t>(words.size());
    asked.type = &datatype::predefined(MPI_UINT64_T);
    asked.op = &datatype::predefined(MPI_SUM);
    ASSERT_EQ(window::run(window, asked), MPI_SUCCESS) << failure_text();
}

/// An access that no honest process starts: its first packets are right, and its last ones exceed the region.
void leave_the_region(Window& window, rma::AccessOperation what, std::vector<uint64_t>& words, int64_t at) {
    rma::Target& target = window::get_or_create_target(window, 0).target;
    rma::Access wrong;
    const auto count = static_cast<int64_t>(words.size());
    const datatype::Datatype& type = datatype::predefined(MPI_UINT64_T);
    (what == rma::AccessOperation::get ? wrong.result : wrong.origin) = {words.data(), count, &type};
    wrong.operation = what;
    wrong.remote_block = {static_cast<uint64_t>(at) * 8, count, &type};
    wrong.over = [](rma::Access&) {};
    rma::start(wrong, target);
    EXPECT_EQ(window::flush(window, 0), MPI_ERR_RMA_RANGE);
    EXPECT_TRUE(wrong.done);
}

TEST(WindowOverHosts, LongAccessesAreCompleteAfterAFlush) {
    Team team(Placement{{0, 0, 0}, {0, 1, 2}});
    team.start({}, [](Node& node) {
        Window* const window = make_window(node, 0x5550, node.size * kWords * 8);
        ASSERT_NE(window, nullptr);
        const int64_t mine = node.rank * kWords;
        std::vector<uint64_t> words(kWords), found(kWords);
        for (int i = 0; i < kWords; ++i) words[static_cast<size_t>(i)] = static_cast<uint64_t>(node.rank + 1) << 32 | i;
        ASSERT_EQ(window::lock(*window, LockHeld::shared, 0, 0), MPI_SUCCESS) << failure_text();
        for (int turn = 0; turn < 10; ++turn) {
            access(*window, rma::AccessOperation::put, words, mine);
            ASSERT_EQ(window::flush(*window, 0), MPI_SUCCESS) << failure_text();
            // Consecutive updates are executed in the order of the calls.
            for (int times = 0; times < 3; ++times) access(*window, rma::AccessOperation::update, words, mine);
            ASSERT_EQ(window::flush(*window, 0), MPI_SUCCESS) << failure_text();
            access(*window, rma::AccessOperation::get, found, mine);
            ASSERT_EQ(window::flush(*window, 0), MPI_SUCCESS) << failure_text();
            for (int i = 0; i < kWords; ++i) ASSERT_EQ(found[static_cast<size_t>(i)], 4 * words[static_cast<size_t>(i)]) << i;
            if (node.rank != node.size - 1) continue;
            for (const rma::AccessOperation what :
                 {rma::AccessOperation::put, rma::AccessOperation::update, rma::AccessOperation::get})
                leave_the_region(*window, what, words, mine + kWords / 2);
        }
        ASSERT_EQ(window::unlock(*window, 0), MPI_SUCCESS) << failure_text();
        node.barrier(0);
        EXPECT_EQ(window::free(*window), MPI_SUCCESS) << failure_text();
        node.barrier(1);
    });
    team.expect_success();
}

}  // namespace
}  // namespace starling::message::test
