// A model of the decision when the state kept for another job may be freed, in every order of events. A process of the other job sends to
// two communicators, which this process creates and frees at any time. Its job ends, and the process may outlive it for a moment.
#include "link/job_reclaim.h"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>

#include "exploration.h"

namespace starling::link {
namespace {

using Rule = bool (*)(const ReclaimState&);

constexpr int kMessages = 3;  ///< messages that the other process sends

/// State that this process keeps for the other job, as link/job, link/failure_detector and message/receive do.
struct Met {
    bool known = false;  ///< whether the Job object exists
    bool mapped = false, dead = false;
    int next_receive = 0;  ///< number of the next message in order
    std::string orphans;   ///< messages for communicators that do not exist yet

    void encode(std::string& key) const {
        key += static_cast<char>('0' + (known | mapped << 1 | dead << 2));
        key += static_cast<char>('0' + next_receive);
        (key += orphans) += '|';
    }
};

struct World {
    enum class Comm : char { unmade = 'u', made = 'm', freed = 'f' };

    Met met;
    std::array<Comm, 2> comms{Comm::unmade, Comm::unmade};
    std::array<bool, 2> held{};  ///< whether a communicator's group holds a reference to the Job object
    std::array<int, 2> due{};    ///< messages that arrived for each communicator and must be received
    std::array<int, 2> received{};
    bool runs = true;    ///< whether the other process runs
    bool ended = false;  ///< whether the other process's job has ended
    int sent = 0;
    std::string memory;  ///< packets in our memory: the number as a digit, and the communicator's letter
    std::string trace;

    std::string key() const {
        std::string key;
        met.encode(key);
        for (int c : {0, 1}) {
            key += static_cast<char>(comms[c]);
            for (const int n : {int{held[c]}, due[c], received[c]}) key += static_cast<char>('0' + n);
        }
        key += static_cast<char>('0' + (runs | ended << 1));
        key += static_cast<char>('0' + sent);
        return key += memory;
    }
};

class Explorer : public test::Exploration<World> {
  public:
    explicit Explorer(Rule rule) : rule_(rule) {}
    bool forgot_and_met_anew() const { return met_anew_; }

  private:
    template <class Act>
    void step(const World& world, const char* label, Act&& act) {
        World next = world;
        (next.trace += label) += ' ';
        act(next);
        push(std::move(next));
    }

    void expand(const World& world) override {
        for (int c : {0, 1}) {
            if (world.runs && world.sent < kMessages && world.comms[c] != World::Comm::freed)
                step(world, c ? "sends-to-B" : "sends-to-A", [&](World& w) { send(w, c); });
            if (world.comms[c] == World::Comm::unmade) step(world, c ? "make-B" : "make-A", [&](World& w) { make(w, c); });
            if (world.comms[c] == World::Comm::made) step(world, c ? "free-B" : "free-A", [&](World& w) { free(w, c); });
        }
        if (world.runs) step(world, "exits", [](World& w) { w.runs = false; });
        if (!world.ended) step(world, "its-job-ends", [](World& w) { w.ended = true; });
        if (!world.memory.empty()) step(world, "poll", [&](World& w) { poll(w); });
        step(world, "look", [&](World& w) { look(w); });
        check(world);
    }

    void send(World& world, int comm) {
        world.memory += static_cast<char>('0' + world.sent++);
        world.memory += comm ? 'B' : 'A';
    }

    /// Maps the other job's segment as Job::map() does; returns false if the job has ended, because its segment cannot be mapped any more.
    bool map(World& world) {
        met_anew_ |= !world.met.known && world.ended;
        world.met.known = true;
        if (world.met.mapped) return true;
        if (world.met.dead || world.ended) return !(world.met.dead = true);
        return world.met.mapped = true;
    }

    void poll(World& world) {
        const int number = world.memory[0] - '0', comm = world.memory[1] - 'A';
        world.memory.erase(0, 2);
        if (!map(world)) return;  // the sender's job has ended: the packet is dropped
        if (number != world.met.next_receive) return fail(world, "a message counts as out of order forever");
        ++world.met.next_receive;
        if (world.comms[comm] == World::Comm::freed) return;
        ++world.due[comm];
        if (world.comms[comm] == World::Comm::made)
            ++world.received[comm];
        else
            world.met.orphans += static_cast<char>('A' + comm);
    }

    /// Creates a communicator with the other process. Its group holds a reference to the Job object, and it receives the orphans of its
    /// context.
    void make(World& world, int comm) {
        if (!map(world) && world.due[comm] == 0) return;  // an error is correct here, because no message is lost
        world.comms[comm] = World::Comm::made;
        world.held[comm] = true;
        const char letter = static_cast<char>('A' + comm);
        world.received[comm] += static_cast<int>(std::count(world.met.orphans.begin(), world.met.orphans.end(), letter));
        std::erase(world.met.orphans, letter);
    }

    void free(World& world, int comm) {
        world.comms[comm] = World::Comm::freed;
        world.held[comm] = false;
        std::erase(world.met.orphans, static_cast<char>('A' + comm));
        world.due[comm] = world.received[comm] = 0;
    }

    /// Checks whether the job has ended, as check_liveness() does: all packets in our memory are delivered before a job counts as dead.
    void look(World& world) {
        if (world.met.mapped && !world.met.dead && world.ended) {
            while (!world.memory.empty()) poll(world);
            world.met.dead = true;
        }
        if (!world.met.known || !rule_(standing_of(world))) return;
        if (world.held[0] || world.held[1]) fail(world, "a communicator refers to a forgotten job");
        world.met = Met{};
    }

    static ReclaimState standing_of(const World& world) {
        return {.held = world.held[0] || world.held[1],
                .mapped = world.met.mapped,
                .dead = world.met.dead,
                .owed = !world.met.orphans.empty()};
    }

    void check(const World& world) {
        for (int c : {0, 1})
            if (world.comms[c] == World::Comm::made && world.received[c] != world.due[c])
                fail(world, "a received message is lost");
        // After the job's end and one more liveness check, no state of the job remains.
        const bool over = world.ended && !world.runs && world.memory.empty() && !world.held[0] && !world.held[1];
        World last = world;
        if (!over || !world.met.orphans.empty()) return;
        look(last);
        if (last.met.known) fail(world, "an ended job without references is kept forever");
    }

    const Rule rule_;
    bool met_anew_ = false;
};

TEST(JobReclaim, NoMessageIsLostAndNoJobKeptForever) {
    Explorer explorer(may_be_forgotten);
    test::explore(explorer);
    EXPECT_TRUE(explorer.forgot_and_met_anew());
}

// Each rule is needed: without it, the exploration finds one of the faults above.

void explore_with(Rule rule) {
    Explorer explorer(rule);
    explorer.run();
}

TEST(JobReclaim, LivingJobsAreKept) {
    EXPECT_NONFATAL_FAILURE(explore_with([](const ReclaimState& job) { return !job.held && !job.owed; }), "forever");
}

TEST(JobReclaim, HeldJobsAreKept) {
    EXPECT_NONFATAL_FAILURE(explore_with([](const ReclaimState& job) { return job.dead && !job.owed; }),
                            "refers to a forgotten job");
}

TEST(JobReclaim, JobsWithOrphanMessagesAreKept) {
    EXPECT_NONFATAL_FAILURE(explore_with([](const ReclaimState& job) { return !job.held && (!job.mapped || job.dead); }),
                            "a received message is lost");
}

TEST(JobReclaim, DeadJobsAreForgotten) {
    EXPECT_NONFATAL_FAILURE(explore_with([](const ReclaimState& job) { return !job.mapped && !job.held; }), "is kept forever");
}

TEST(JobReclaim, NeverMappedJobsAreForgotten) {
    EXPECT_NONFATAL_FAILURE(
        explore_with([](const ReclaimState& job) { return job.mapped && job.dead && !job.held && !job.owed; }),
        "is kept forever");
}

// Cases outside the model: the process's own job, and jobs whose memory may be exposed.
TEST(JobReclaim, TheOwnJobAndExposedJobsAreKept) {
    EXPECT_FALSE(may_be_forgotten({.own = true, .mapped = true, .dead = true}));
    EXPECT_FALSE(may_be_forgotten({.exposed = true, .mapped = true, .dead = true}));
}

}  // namespace
}  // namespace starling::link
