// RDMA targets: memory that the peer writes over an RC connection with a notice (transport/network/rdma/rdma_write_target.cpp), with every
// fault at every step. Data reported as complete is right, and a finished target is never written again.
#include <memory>

#include "rc_sides.h"
#include "transport/network/rdma/rc_connection.h"

namespace starling::network {
namespace {

using transport::WriteNotice;

struct Expected : transport::RdmaTarget {
    int written = 0, over = 0;
    std::vector<char> memory;
    std::vector<char> as_told;  ///< contents of `memory` when the target was reported written or cancelled

    explicit Expected(uint64_t bytes) : memory(bytes, '.') {
        then = [](transport::RdmaTarget& self, bool is) {
            auto& mine = static_cast<Expected&>(self);
            ++(is ? mine.written : mine.over);
            mine.as_told = mine.memory;
        };
    }
    int told() const { return written + over; }
};

std::vector<char> text_of(uint64_t bytes) {
    std::vector<char> text(bytes);
    for (uint64_t i = 0; i < bytes; ++i) text[i] = static_cast<char>(i * 31 + i / 251);
    return text;
}

// Lengths of writes that are sent inline, through a slot, from the caller's memory, and in several parts.
constexpr uint64_t kLengths[] = {40, 4000, 20'000, 9'000'001};

class RdmaTargetTest : public RcTest, public testing::WithParamInterface<WriteNotice> {
  protected:
    static constexpr uint32_t kWord = 77;

    void SetUp() override { open(); }
    RcConnection& from_a() { return *static_cast<RcConnection*>(a.connection); }
    RcConnection& to_b() { return *static_cast<RcConnection*>(b.connection); }
    bool post_rdma_target(Expected& what, uint32_t word = kWord) {
        return Rc::post_rdma_target(to_b(), what.memory.data(), what.memory.size(), word, what, region);
    }
    int write(const std::vector<char>& text, uint32_t word = kWord) {
        done = {};
        return a.rc->write_expected(from_a(), region, text.data(), text.size(), word, GetParam(), done);
    }
    transport::RemoteKey region;
    transport::Completion done;
};
INSTANTIATE_TEST_SUITE_P(, RdmaTargetTest, testing::Values(WriteNotice::separate_send, WriteNotice::write_with_imm),
                         [](auto& info) { return info.param == WriteNotice::write_with_imm ? "With" : "Behind"; });

TEST_P(RdmaTargetTest, WritesAndNotifiesOnce) {
    for (const uint64_t bytes : kLengths) {
        SCOPED_TRACE(bytes);
        Expected there(bytes);
        const std::vector<char> text = text_of(bytes);
        ASSERT_TRUE(post_rdma_target(there));
        const uint64_t frames = fabric.frames, transfers = fabric.transfers;
        ASSERT_EQ(write(text), MPI_SUCCESS) << failure_text();
        EXPECT_EQ(there.told(), 0);
        run();
        EXPECT_TRUE(done.done && done.error == MPI_SUCCESS);
        EXPECT_EQ(there.written, 1);
        EXPECT_EQ(there.over, 0);
        EXPECT_EQ(there.memory, text);
        EXPECT_EQ(fabric.transfers - transfers, bytes / (4u << 20) + 1);
        EXPECT_EQ(fabric.frames - frames, GetParam() == WriteNotice::separate_send ? 1u : 0u);
    }
    EXPECT_EQ(a.broken + b.broken, 0);
}

TEST_P(RdmaTargetTest, SeveralTargetsInAnyOrder) {
    std::vector<std::unique_ptr<Expected>> all;
    std::vector<transport::RemoteKey> regions(20);
    std::vector<transport::Completion> ends(20);
    const std::vector<char> text = text_of(5000);
    for (uint32_t i = 0; i < 20; ++i) {
        all.push_back(std::make_unique<Expected>(5000));
        ASSERT_TRUE(post_rdma_target(*all[i], i));
        regions[i] = region;
    }
    for (uint32_t i = 20; i-- > 0;)
        ASSERT_EQ(a.rc->write_expected(from_a(), regions[i], text.data(), 5000, i, GetParam(), ends[i]), MPI_SUCCESS);
    run();
    for (uint32_t i = 0; i < 20; ++i) EXPECT_TRUE(all[i]->written == 1 && all[i]->memory == text && ends[i].done) << i;
}

TEST_P(RdmaTargetTest, AFullQueueNotifiesLater) {
    Expected there(9'000'001);
    const std::vector<char> text = text_of(9'000'001);
    ASSERT_TRUE(post_rdma_target(there));
    for (int i = 0; a.send("frame " + std::to_string(i)) == SendResult::done;) ++i;
    ASSERT_EQ(write(text), MPI_SUCCESS);
    run();
    EXPECT_EQ(there.written, 1);
    EXPECT_EQ(there.memory, text);
}

TEST_P(RdmaTargetTest, TheClosingFrameArrivesAfterTheWrite) {
    Expected there(9'000'001);
    ASSERT_TRUE(post_rdma_target(there));
    const std::vector<char> text = text_of(9'000'001);
    ASSERT_EQ(write(text), MPI_SUCCESS);
    a.rc->finish(*a.connection);
    run();
    EXPECT_EQ(there.written, 1);
    EXPECT_EQ(there.memory, text);
    EXPECT_EQ(b.ended, 1);
}

TEST_P(RdmaTargetTest, NoWriteAfterClosing) {
    Expected there(100);
    ASSERT_TRUE(post_rdma_target(there));
    a.rc->finish(*a.connection);
    EXPECT_EQ(write(text_of(100)), MPI_ERR_OTHER);
    run();
    ASSERT_EQ(b.ended, 1);
    b.rc->finish(*b.connection);
    b.rc->drop(*b.connection);
    b.connect();
    run();
    EXPECT_EQ(a.ended, 1);  // the closing frame was received, although b had posted a target
    EXPECT_EQ(there.over, 1);
}

TEST_P(RdmaTargetTest, AnRkeyOfAnEarlierConnectionIsRefused) {
    Expected there(100);
    ASSERT_TRUE(post_rdma_target(there));
    const transport::RemoteKey old = region;
    EXPECT_TRUE(from_a().reaches(old));
    b.port.queues[0]->break_now();
    run();
    EXPECT_EQ(there.over, 1);
    a.rc->drop(*a.connection), b.rc->drop(*b.connection);
    a.connect(), b.connect();
    open();
    EXPECT_FALSE(from_a().reaches(old));
    EXPECT_EQ(write(text_of(100)), MPI_ERR_OTHER);
    EXPECT_EQ(there.memory, there.as_told);
}

TEST_P(RdmaTargetTest, AnUnexpectedNoticeBreaksTheConnection) {
    Expected there(100);
    ASSERT_TRUE(post_rdma_target(there));
    ASSERT_EQ(write(text_of(100), kWord + 1), MPI_SUCCESS);
    run();
    EXPECT_EQ(b.rc->counters().malformed, 1u);
    EXPECT_TRUE(!a.is_open() && !b.is_open());
    EXPECT_EQ(there.over, 1);
}

TEST_P(RdmaTargetTest, FailedRegistrationsLeaveTheConnectionOpen) {
    Expected there(20'000);
    b.port.refuse_memory = true;
    EXPECT_FALSE(post_rdma_target(there));
    b.port.refuse_memory = false;
    ASSERT_TRUE(post_rdma_target(there));
    a.port.refuse_memory = true;
    EXPECT_EQ(write(text_of(20'000)), MPI_ERR_OTHER);
    b.rc->cancel_rdma_target(there, false);
    run();
    EXPECT_TRUE(a.is_open() && b.is_open());
    EXPECT_EQ(there.told(), 0);
}

enum class Fault { a_breaks, b_breaks, b_calls_off, a_drops, b_drops, a_port, b_port, faults };

/// Executes a write in small steps, with a fault before step `at`; `steps` counts the steps.
class Story : public RcPair {
  public:
    Story(uint64_t bytes, WriteNotice told) : text(text_of(bytes)), there(bytes), told_(told) {}

    void run_with(Fault fault, int at) {
        open();
        transport::RemoteKey region;
        auto& to = *static_cast<RcConnection*>(b.connection);
        ASSERT_TRUE(Rc::post_rdma_target(to, there.memory.data(), text.size(), 7, there, region));
        auto& from = *static_cast<RcConnection*>(a.connection);
        ASSERT_EQ(a.rc->write_expected(from, region, text.data(), text.size(), 7, told_, done), MPI_SUCCESS);
        for (int idle = 0; idle < 4; ++steps) {
            if (steps == at) act(fault);
            idle = step(steps) ? 0 : idle + 1;
        }
        run();
        a.rc->poll(), b.rc->poll();
    }

    const std::vector<char> text;
    Expected there;
    transport::Completion done;
    int steps = 0;
    bool called_off = false;

  private:
    void act(Fault fault) {
        switch (fault) {
            case Fault::a_breaks:
                return a.port.queues[0]->break_now();
            case Fault::b_breaks:
                return b.port.queues[0]->break_now();
            case Fault::b_calls_off:
                called_off = there.place != nullptr;
                there.as_told = called_off ? there.memory : there.as_told;
                return b.rc->cancel_rdma_target(there, true);
            // Close and reopen the connection, as link does when the other process is reported dead, perhaps wrongly.
            case Fault::a_drops:
                a.rc->finish(*a.connection);
                a.rc->drop(*a.connection);
                return a.connect();
            case Fault::b_drops:
                b.rc->finish(*b.connection);
                b.rc->drop(*b.connection);
                return b.connect();
            case Fault::a_port:
                return a.rc->lose_port(a.port, true);
            case Fault::b_port:
                return b.rc->lose_port(b.port, true);
            case Fault::faults:
                return;
        }
    }
    bool step(int which) {
        Side& side = which % 2 ? b : a;
        bool any = false;
        if (which % 4 < 2) {
            for (size_t i = 0; i < side.port.queues.size() && !any; ++i) any = side.port.step(*side.port.queues[i]);
            return any;
        }
        any = side.poll();
        for (auto [kind, payload] : std::exchange(side.told, {})) hand(&side == &a ? b : a, kind, payload), any = true;
        return any;
    }
    const WriteNotice told_;
};

TEST_P(RdmaTargetTest, EveryFaultAtEveryStep) {
    int before_the_end = 0, after_it = 0;
    for (int f = 0; f < static_cast<int>(Fault::faults); ++f)
        for (const uint64_t bytes : {uint64_t{40}, uint64_t{20'000}, uint64_t{(4u << 20) + 1}})
            for (int at = 0, steps = 0; at <= steps; ++at) {
                SCOPED_TRACE("fault " + std::to_string(f) + " at step " + std::to_string(at) + ", " + std::to_string(bytes));
                Story story(bytes, GetParam());
                story.run_with(static_cast<Fault>(f), at);
                ASSERT_FALSE(HasFailure());
                steps = story.steps;
                const Expected& there = story.there;
                ASSERT_EQ(there.told(), story.called_off ? 0 : 1);
                // The memory has not changed since the notice or the cancellation.
                ASSERT_TRUE(there.memory == there.as_told);
                ASSERT_TRUE(there.written == 0 || there.memory == story.text);
                ASSERT_TRUE(story.done.done);
                ++(there.written ? after_it : before_the_end);
            }
    EXPECT_GT(before_the_end, 40);
    EXPECT_GT(after_it, 10);
}

}  // namespace
}  // namespace starling::network
