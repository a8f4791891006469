// Messages between real processes, without a launcher: the test makes the job segments, forks the
// processes, and plays the launcher's part when one is killed.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/config.h"
#include "base/error.h"
#include "boot/job_segment.h"
#include "datatype/construct.h"
#include "datatype/datatype.h"
#include "link/peer.h"
#include "message/match.h"
#include "message/point_to_point.h"
#include "message/receive.h"
#include "message/send.h"
#include "progress/engine.h"
#include "progress/lock.h"
#include "transport/shm/region.h"

namespace starling::message {
namespace {

using Setting = std::pair<const char*, const char*>;
using Settings = std::vector<Setting>;

constexpr uint64_t kContext = 0x1230;

/// Counters that all processes of a test see.
struct Board {
    std::atomic<int> arrived[8];
    std::atomic<int> stage;
};

class Everyone final : public Roster {
  public:
    std::vector<link::Process> members;
    int size() const override { return static_cast<int>(members.size()); }
    link::Process at(int rank) const override { return members[static_cast<size_t>(rank)]; }
};

/// What a test's body sees in its process.
struct Node {
    int rank;
    int size;
    Board& board;
    Everyone everyone;
    std::unique_ptr<Channel> channel;

    link::Peer& peer(int other) { return *channel->peer(other); }
    /// Waits for all, moving messages meanwhile.
    void barrier(int which) { meet(which, size); }
    void meet(int which, int count) {
        board.arrived[which].fetch_add(1);
        wait_for([&] { return board.arrived[which].load() >= count; });
    }
    /// For conditions that no packet announces: never sleeps.
    void wait_for(const std::function<bool()>& condition) {
        while (!condition()) progress::test();
    }
};

/// Processes of one or several jobs.
class Team {
  public:
    /// `jobs`: of each process, the number of its job, from 0 in order.
    explicit Team(std::vector<int> jobs) : job_of_(std::move(jobs)) {
        void* memory =
            mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        board_ = static_cast<Board*>(memory);
        segments_.resize(static_cast<size_t>(job_of_.back()) + 1);
        for (size_t j = 0; j < segments_.size(); ++j) {
            const auto size =
                static_cast<uint32_t>(std::count(job_of_.begin(), job_of_.end(), static_cast<int>(j)));
            EXPECT_EQ(boot::JobSegment::create(size, nullptr, 0, segments_[j]), MPI_SUCCESS);
        }
    }
    ~Team() {
        for (const pid_t pid : pids_)
            if (pid > 0) kill(pid, SIGKILL), waitpid(pid, nullptr, 0);
        munmap(board_, sizeof(Board));
    }

    void start(const Settings& settings, const std::function<void(Node&)>& body) {
        for (size_t i = 0; i < job_of_.size(); ++i) {
            const pid_t pid = fork();
            if (pid == 0) run(static_cast<int>(i), settings, body);
            pids_.push_back(pid);
        }
    }
    /// Waits for a process's end.
    void expect_success(size_t i) {
        int status = 0;
        waitpid(pids_[i], &status, 0);
        pids_[i] = 0;
        EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0)
            << "process " << i << " ended with status " << status;
    }
    void expect_success() {
        for (size_t i = 0; i < pids_.size(); ++i) expect_success(i);
    }
    /// What becomes of a job when its process is killed.
    void kill_process(size_t i) {
        kill(pids_[i], SIGKILL);
        waitpid(pids_[i], nullptr, 0);
        pids_[i] = 0;
        segments_[static_cast<size_t>(job_of_[i])].header().state.store(boot::JobState::failed);
    }
    Board& board() { return *board_; }

  private:
    [[noreturn]] void run(int me, const Settings& settings, const std::function<void(Node&)>& body) {
        alarm(30);
        for (const auto& [name, value] : settings)
            EXPECT_EQ(set_variable(name, value), MPI_SUCCESS) << failure_text();
        std::vector<link::Job*> jobs;
        std::vector<uint32_t> ranks(segments_.size());
        for (const auto& segment : segments_) jobs.push_back(link::find_job(segment.address()));
        Node node{me, static_cast<int>(job_of_.size()), *board_, {}, nullptr};
        for (const int job : job_of_) node.everyone.members.push_back({jobs[job], ranks[job]++});
        const link::Process self = node.everyone.members[me];
        segments_[job_of_[me]].cell(self.rank).pid.store(getpid());
        link::adopt_own_job(std::move(segments_[job_of_[me]]), self.rank);
        for (link::Job* job : jobs) EXPECT_EQ(job->map(), MPI_SUCCESS) << failure_text();
        link::start();
        message::start();
        progress::multi_threaded = config().wait == Wait::thread;
        progress::Lock lock;  // as entry points do: with a progress thread we are two
        progress::start();
        node.channel = std::make_unique<Channel>(kContext, node.everyone, me);
        body(node);
        std::fflush(nullptr);
        _exit(::testing::Test::HasFailure() ? 1 : 0);
    }

    std::vector<int> job_of_;
    std::vector<boot::JobSegment> segments_;
    std::vector<pid_t> pids_;
    Board* board_;
};

const datatype::Datatype& bytes_type() {
    return datatype::predefined(MPI_BYTE);
}

/// Bytes with a gap after each eight, so that nothing is contiguous.
const datatype::Datatype& gaps_type() {
    static datatype::Datatype* made = [] {
        datatype::Datatype *vector = nullptr, *resized = nullptr;
        auto* byte = &datatype::predefined(MPI_BYTE);
        EXPECT_EQ(datatype::make(MPI_COMBINER_CONTIGUOUS, false, {8}, {byte}, &vector), MPI_SUCCESS);
        EXPECT_EQ(datatype::make(MPI_COMBINER_RESIZED, false, {0, 12}, {vector}, &resized), MPI_SUCCESS);
        datatype::commit(*resized);
        return resized;
    }();
    return *made;
}

/// One message as both sides know it.
struct Plan {
    int source, destination, number;
    uint64_t bytes;  ///< a multiple of eight if `gaps`
    int tag;
    bool synchronous, gaps_out, gaps_in;

    std::byte at(uint64_t i) const {
        return static_cast<std::byte>((i * 7 + (i >> 8) * 13 + static_cast<uint64_t>(number) * 31 +
                                       static_cast<uint64_t>(source * 5 + destination)) &
                                      0xff);
    }
};

uint64_t place(bool gaps, uint64_t i) {
    return gaps ? i / 8 * 12 + i % 8 : i;
}

/// A buffer as a plan's side sees it.
struct Buffer {
    std::vector<std::byte> memory;
    bool gaps;
    int64_t count;

    Buffer(uint64_t bytes, bool with_gaps)
        : memory(place(with_gaps, bytes) + 1),
          gaps(with_gaps),
          count(static_cast<int64_t>(with_gaps ? bytes / 8 : bytes)) {}
    const datatype::Datatype& type() const { return gaps ? gaps_type() : bytes_type(); }
};

struct Sending {
    Plan plan;
    Buffer buffer;
    SendRequest request;
    explicit Sending(const Plan& p) : plan(p), buffer(p.bytes, p.gaps_out) {
        for (uint64_t i = 0; i < p.bytes; ++i) buffer.memory[place(p.gaps_out, i)] = p.at(i);
    }
    void start(Node& node) {
        start_send(request, *node.channel, buffer.memory.data(), buffer.count, buffer.type(),
                   plan.destination, plan.tag, plan.synchronous ? Mode::synchronous : Mode::standard);
    }
};

struct Receiving {
    Buffer buffer;
    ReceiveRequest request;
    Receiving(uint64_t capacity, bool gaps) : buffer(capacity, gaps) {}

    void expect(const Plan& plan) const {
        const uint64_t capacity = datatype::packed_size(buffer.type(), buffer.count);
        const uint64_t bytes = std::min(plan.bytes, capacity);
        ASSERT_TRUE(request.done);
        EXPECT_EQ(request.outcome.error, plan.bytes > capacity ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
        EXPECT_EQ(request.outcome.source, plan.source);
        EXPECT_EQ(request.outcome.tag, plan.tag);
        ASSERT_EQ(request.outcome.bytes, bytes) << "message " << plan.number << " of " << plan.bytes;
        for (uint64_t i = 0; i < bytes; ++i)
            ASSERT_EQ(buffer.memory[place(buffer.gaps, i)], plan.at(i))
                << "byte " << i << " of message " << plan.number << " of " << plan.bytes;
    }
};

// --- Random traffic ---

constexpr uint64_t kSizes[] = {0,    8,    24,   32,    40,    64,    72,     896,    960, 968,
                               4000, 8192, 8200, 16384, 16392, 40000, 100000, 300000, 16,  8};

/// The same plans on both sides.
std::vector<Plan> plan_round(int source, int destination, int round, int count) {
    std::mt19937 random(static_cast<unsigned>(round * 1000 + source * 10 + destination));
    std::vector<Plan> plans;
    for (int i = 0; i < count; ++i) {
        const bool gaps = random() % 4 == 0;
        plans.push_back({source, destination, round * count + i, kSizes[random() % std::size(kSizes)],
                         static_cast<int>(random() % 3), random() % 8 == 0, gaps, gaps && random() % 2});
        plans.back().gaps_in = random() % 4 == 0;
    }
    return plans;
}

enum class Form { source_any_tag, any_source, by_tag, matched, forms };

class Round {
  public:
    Round(Node& node, int round, bool switching)
        : node_(node),
          round_(round),
          switching_(switching),
          random_(static_cast<unsigned>(round * 77 + node.rank)) {}

    void run() {
        const auto form = static_cast<Form>(round_ % static_cast<int>(Form::forms));
        const bool late = round_ % 3 == 0;  // everything is unexpected
        if (!late && form != Form::matched) post(form);
        send();
        if (late) {
            for (int i = 0; i < 50; ++i) progress::poll();
            post(form);
        }
        if (form == Form::matched && !late) post(form);
        finish(form);
    }

  private:
    static constexpr int kEach = 24;

    void disturb() {
        if (!switching_ || random_() % 4) return;
        const int other = static_cast<int>(random_() % static_cast<unsigned>(node_.size));
        link::request_close(node_.peer(other));
        if (random_() % 2) progress::poll();
    }

    void send() {
        std::vector<std::vector<Plan>> all;
        for (int d = 0; d < node_.size; ++d) all.push_back(plan_round(node_.rank, d, round_, kEach));
        for (int i = 0; i < kEach; ++i)
            for (auto& plans : all) {
                disturb();
                sends_.emplace_back(plans[static_cast<size_t>(i)]).start(node_);
            }
    }

    Receiving& post_one(int source, int tag, uint64_t capacity, bool gaps) {
        disturb();
        Receiving& receiving = receives_.emplace_back(capacity, gaps);
        start_receive(receiving.request, *node_.channel, receiving.buffer.memory.data(),
                      receiving.buffer.count, receiving.buffer.type(), source, tag);
        return receiving;
    }

    // Some buffers are too small: that must not disturb the messages that follow.
    uint64_t capacity_for(const Plan& plan) {
        if (plan.bytes >= 16 && random_() % 8 == 0) return plan.bytes / 16 * 8;
        return random_() % 2 ? plan.bytes : plan.bytes + 8;
    }

    void post(Form form) {
        switch (form) {
            case Form::source_any_tag:
                for (int s = 0; s < node_.size; ++s)
                    for (const Plan& plan : plan_round(s, node_.rank, round_, kEach)) {
                        expected_.push_back(plan);
                        post_one(s, MPI_ANY_TAG, capacity_for(plan), plan.gaps_in);
                    }
                break;
            case Form::by_tag:
                for (int s = node_.size - 1; s >= 0; --s)
                    for (const int tag : {2, 0, 1})
                        for (const Plan& plan : plan_round(s, node_.rank, round_, kEach)) {
                            if (plan.tag != tag) continue;
                            expected_.push_back(plan);
                            post_one(s, tag, capacity_for(plan), plan.gaps_in);
                        }
                break;
            case Form::any_source:
                for (int i = 0; i < node_.size * kEach; ++i)
                    post_one(MPI_ANY_SOURCE, MPI_ANY_TAG, 300000, i % 2);
                break;
            case Form::matched:
                for (int i = 0; i < node_.size * kEach; ++i) match_one();
                break;
            case Form::forms:
                break;
        }
    }

    void match_one() {
        Unexpected* found = nullptr;
        progress::wait_until(
            [&] { return (found = node_.channel->queues().find(MPI_ANY_SOURCE, MPI_ANY_TAG)) != nullptr; });
        MatchQueues::take(*found);
        disturb();
        Receiving& receiving = receives_.emplace_back(found->bytes, false);
        const uint64_t bytes = found->bytes;
        start_matched_receive(receiving.request, *found, receiving.buffer.memory.data(),
                              receiving.buffer.count, receiving.buffer.type());
        progress::wait(receiving.request);
        EXPECT_EQ(receiving.request.outcome.bytes, bytes);
    }

    void finish(Form form) {
        for (Receiving& receiving : receives_) progress::wait(receiving.request);
        for (Sending& sending : sends_) {
            progress::wait(sending.request);
            EXPECT_EQ(sending.request.outcome.error, MPI_SUCCESS);
        }
        if (form == Form::any_source || form == Form::matched) {
            // In the order of posting, each source's messages in the order of sending.
            std::vector<size_t> next(static_cast<size_t>(node_.size));
            std::vector<std::vector<Plan>> plans;
            for (int s = 0; s < node_.size; ++s) plans.push_back(plan_round(s, node_.rank, round_, kEach));
            for (const Receiving& receiving : receives_) {
                const auto source = static_cast<size_t>(receiving.request.outcome.source);
                ASSERT_LT(source, next.size());
                ASSERT_LT(next[source], plans[source].size());
                receiving.expect(plans[source][next[source]++]);
            }
        } else {
            for (size_t i = 0; i < receives_.size(); ++i) receives_[i].expect(expected_[i]);
        }
    }

    Node& node_;
    const int round_;
    const bool switching_;
    std::mt19937 random_;
    std::deque<Sending> sends_;
    std::deque<Receiving> receives_;
    std::vector<Plan> expected_;
};

void traffic(std::vector<int> jobs, const Settings& settings, bool switching, int rounds,
             const std::function<void(Node&)>& check = nullptr) {
    Team team(std::move(jobs));
    team.start(settings, [&](Node& node) {
        for (int round = 0; round < rounds && !::testing::Test::HasFailure(); ++round) {
            Round(node, round, switching).run();
            node.meet(4, node.size * (round + 1));  // a wildcard must not take a message of the next round
        }
        EXPECT_EQ(open_sends(), 0u);
        node.barrier(0);
        progress::wait_until([] { return !link::anything_pending(); });
        if (check) check(node);
        node.barrier(1);
    });
    team.expect_success();
}

TEST(Message, TrafficByDefault) {
    traffic({0, 0, 0}, {}, false, 24);
}

TEST(Message, TrafficOverSwitchingPaths) {
    traffic({0, 0, 0}, {{"STARLING_DIRECT_THRESHOLD", "4"}}, true, 40, [](Node&) {
        EXPECT_GT(counters.opened, 4u);
        EXPECT_GT(counters.closed, 4u);
        EXPECT_GT(counters.messages_ring, 100u);
        EXPECT_GT(counters.messages_inbox, 100u);
    });
}

TEST(Message, TrafficBetweenJobsOverSwitchingPaths) {
    traffic({0, 1, 1}, {{"STARLING_DIRECT_THRESHOLD", "4"}}, true, 16);
}

TEST(Message, TrafficInTwoCopiesOverSwitchingPaths) {
    traffic({0, 0, 0}, {{"STARLING_DIRECT_THRESHOLD", "4"}, {"STARLING_SINGLE_COPY", "off"}}, true, 32,
            [](Node&) { EXPECT_GT(counters.closed, 4u); });
}

TEST(Message, TrafficOnTheBasePathAlone) {
    traffic({0, 0}, {{"STARLING_MAX_DIRECT", "0"}, {"STARLING_SINGLE_COPY", "off"}}, false, 12,
            [](Node&) { EXPECT_EQ(counters.messages_ring, 0u); });
}

TEST(Message, TrafficWithOneSlotForMany) {
    traffic({0, 0, 0}, {{"STARLING_MAX_DIRECT", "1"}, {"STARLING_DIRECT_THRESHOLD", "4"}}, true, 24,
            [](Node&) { EXPECT_GT(counters.opened, 0u); });
}

TEST(Message, TrafficWithRendezvousForEverything) {
    traffic({0, 0}, {{"STARLING_EAGER_LIMIT", "0"}}, true, 12);
}

TEST(Message, TrafficWithAProgressThread) {
    traffic({0, 0}, {{"STARLING_WAIT", "thread"}, {"STARLING_DIRECT_THRESHOLD", "4"}}, true, 16);
}

// --- One at a time ---

void send_blocking(Node& node, uint64_t bytes, int to, int tag, int number = 0) {
    Sending sending({node.rank, to, number, bytes, tag, false, false, false});
    sending.start(node);
    progress::wait(sending.request);
    EXPECT_EQ(sending.request.outcome.error, MPI_SUCCESS);
}

TEST(Message, WaitsForAContextThatIsNotKnownYet) {
    Team team({0, 0});
    team.start({}, [](Node& node) {
        const uint64_t context = 0x4560;
        if (node.rank == 0) {
            Channel early(context, node.everyone, 0);
            std::deque<Sending> sends;
            for (int i = 0; i < 10; ++i) {
                sends.emplace_back(Plan{0, 1, i, i % 2 ? 100000u : 8u, 5, false, false, false});
                start_send(sends.back().request, early, sends.back().buffer.memory.data(),
                           sends.back().buffer.count, bytes_type(), 1, 5, Mode::standard);
            }
            node.barrier(0);
            for (Sending& sending : sends) progress::wait(sending.request);
        } else {
            node.barrier(0);
            for (int i = 0; i < 100; ++i) progress::poll();
            Channel late(context, node.everyone, 1);
            for (int i = 0; i < 10; ++i) {
                Receiving receiving(100000, false);
                start_receive(receiving.request, late, receiving.buffer.memory.data(),
                              receiving.buffer.count, bytes_type(), 0, 5);
                progress::wait(receiving.request);
                receiving.expect({0, 1, i, i % 2 ? 100000u : 8u, 5, false, false, false});
            }
        }
        node.barrier(1);
    });
    team.expect_success();
}

TEST(Message, ACancelledReceiveTakesNothing) {
    Team team({0, 0});
    team.start({}, [](Node& node) {
        if (node.rank == 0) {
            node.barrier(0);
            send_blocking(node, 64, 1, 7);
        } else {
            Receiving cancelled(64, false), kept(64, false);
            start_receive(cancelled.request, *node.channel, cancelled.buffer.memory.data(), 64,
                          bytes_type(), 0, 7);
            start_receive(kept.request, *node.channel, kept.buffer.memory.data(), 64, bytes_type(),
                          MPI_ANY_SOURCE, 7);
            EXPECT_TRUE(cancel_receive(cancelled.request));
            EXPECT_TRUE(cancelled.request.done);
            EXPECT_TRUE(cancelled.request.outcome.cancelled);
            EXPECT_FALSE(cancel_receive(cancelled.request));
            node.barrier(0);
            progress::wait(kept.request);
            kept.expect({0, 1, 0, 64, 7, false, false, false});
            EXPECT_FALSE(cancel_receive(kept.request));
        }
        node.barrier(1);
    });
    team.expect_success();
}

TEST(Message, InternalTagsMatchNoWildcard) {
    Team team({0, 0});
    team.start({}, [](Node& node) {
        if (node.rank == 0) {
            send_blocking(node, 8, 1, -5, 1);
            send_blocking(node, 8, 1, 5, 2);
        } else {
            Receiving first(8, false), second(8, false);
            start_receive(first.request, *node.channel, first.buffer.memory.data(), 8, bytes_type(),
                          MPI_ANY_SOURCE, MPI_ANY_TAG);
            progress::wait(first.request);
            first.expect({0, 1, 2, 8, 5, false, false, false});
            start_receive(second.request, *node.channel, second.buffer.memory.data(), 8, bytes_type(), 0,
                          -5);
            progress::wait(second.request);
            second.expect({0, 1, 1, 8, -5, false, false, false});
        }
        node.barrier(1);
    });
    team.expect_success();
}

// Requests that MPI_Request_free was called for go by themselves.
TEST(Message, OrphanedRequestsAreDisposedOfOnce) {
    Team team({0, 0});
    team.start({{"STARLING_EAGER_LIMIT", "64"}}, [](Node& node) {
        static int disposed = 0;
        static constexpr RequestClass kClass{.dispose = [](Request&) { ++disposed; }};
        if (node.rank == 0) {
            std::deque<Sending> sends;
            for (int i = 0; i < 200; ++i) {
                Sending& sending =
                    sends.emplace_back(Plan{0, 1, i, i % 2 ? 5000u : 8u, 1, false, false, false});
                sending.start(node);
                if (sending.request.done) continue;
                sending.request.operations = &kClass;
                sending.request.orphaned = true;
            }
            const int waiting = static_cast<int>(std::count_if(
                sends.begin(), sends.end(), [](const Sending& s) { return !s.request.done; }));
            EXPECT_GT(waiting, 0);
            node.barrier(0);
            progress::wait_until([&] { return disposed == waiting; });
            EXPECT_EQ(open_sends(), 0u);
        } else {
            node.barrier(0);
            for (int i = 0; i < 200; ++i) {
                Receiving receiving(5000, false);
                start_receive(receiving.request, *node.channel, receiving.buffer.memory.data(), 5000,
                              bytes_type(), 0, 1);
                progress::wait(receiving.request);
                receiving.expect({0, 1, i, i % 2 ? 5000u : 8u, 1, false, false, false});
            }
        }
        node.barrier(1);
    });
    team.expect_success();
}

TEST(Message, NobodyWaitsForThoseWhoHaveFinalized) {
    Team team({0, 0});
    team.start({}, [](Node& node) {
        if (node.rank == 0) {
            std::deque<Sending> sends;
            for (int i = 0; i < 200; ++i)
                sends.emplace_back(Plan{0, 1, i, i % 10 ? 8u : 20000u, 1, false, false, false}).start(node);
            EXPECT_GT(open_sends(), 0u);
            node.barrier(0);
            node.wait_for([&] {
                drop_sends_to_finalized();
                return open_sends() == 0 && !link::anything_pending();
            });
            for (const Sending& sending : sends) EXPECT_TRUE(sending.request.done);
        } else {
            const link::Process& me = link::self();
            me.job->segment().cell(me.rank).state.store(boot::RankState::finalized);
            node.board.arrived[0].fetch_add(1);
        }
    });
    team.expect_success();
}

// --- The other job ends ---

constexpr int kReady = 1;

/// Waits until all are done with MPI_ERR_PROC_ABORTED.
template <class T>
void expect_aborted(std::deque<T>& all) {
    for (T& one : all) {
        progress::wait(one.request);
        EXPECT_EQ(one.request.outcome.error, MPI_ERR_PROC_ABORTED);
    }
}

/// Runs `survivor` as process 0 and `victim`, of another job, as process 1; kills the victim when the
/// survivor has set the stage to kReady.
void with_victim(const Settings& settings, const std::function<void(Node&)>& survivor,
                 const std::function<void(Node&)>& victim) {
    Team team({0, 1});
    team.start(settings, [&](Node& node) { (node.rank == 0 ? survivor : victim)(node); });
    for (int i = 0; i < 20000 && team.board().stage.load() != kReady; ++i) usleep(1000);
    EXPECT_EQ(team.board().stage.load(), kReady);
    team.kill_process(1);
    team.expect_success(0);
}

[[noreturn]] void sleep_for_ever() {
    for (;;) pause();
}

void expect_nothing_works_any_more(Node& node) {
    std::deque<Sending> sends;
    for (const uint64_t bytes : {8u, 100000u})
        sends.emplace_back(Plan{0, 1, 0, bytes, 1, false, false, false}).start(node);
    expect_aborted(sends);
    std::deque<Receiving> receives;
    for (const int source : {1, MPI_ANY_SOURCE}) {
        Receiving& r = receives.emplace_back(8, false);
        start_receive(r.request, *node.channel, r.buffer.memory.data(), 8, bytes_type(), source, 1);
    }
    expect_aborted(receives);
    EXPECT_EQ(open_sends(), 0u);
}

TEST(DeadJob, FailsWhatWasNeverReceived) {
    with_victim(
        {},
        [](Node& node) {
            std::deque<Sending> sends;
            // More than the inbox holds, and messages that nobody fetches.
            for (int i = 0; i < 200; ++i)
                sends.emplace_back(Plan{0, 1, i, i % 10 ? 8u : 50000u, 1, i % 20 == 1, false, false})
                    .start(node);
            std::deque<Receiving> receives;
            for (int i = 0; i < 10; ++i) {
                Receiving& r = receives.emplace_back(8, false);
                start_receive(r.request, *node.channel, r.buffer.memory.data(), 8, bytes_type(),
                              i % 2 ? 1 : MPI_ANY_SOURCE, i % 3 ? 4 : MPI_ANY_TAG);
            }
            node.board.stage.store(kReady);
            expect_aborted(receives);
            int failed = 0;
            for (Sending& sending : sends) {
                progress::wait(sending.request);
                failed += sending.request.outcome.error == MPI_ERR_PROC_ABORTED;
            }
            EXPECT_GE(failed, 200 - 64);
            expect_nothing_works_any_more(node);
            progress::wait_until([] { return !link::anything_pending(); });
        },
        [](Node&) { sleep_for_ever(); });
}

void stream_that_breaks_off(bool survivor_sends, const char* max_direct) {
    constexpr uint64_t kLong = 64 << 20;
    const auto send = [](Node& node, int to) {
        auto* sending = new Sending(Plan{node.rank, to, 0, kLong, 1, false, false, false});
        sending->start(node);
        return sending;
    };
    const auto receive = [](Node& node, int from) {
        auto* receiving = new Receiving(kLong, false);
        start_receive(receiving->request, *node.channel, receiving->buffer.memory.data(), kLong,
                      bytes_type(), from, 1);
        return receiving;
    };
    with_victim(
        {{"STARLING_SINGLE_COPY", "off"}, {"STARLING_MAX_DIRECT", max_direct}},
        [&](Node& node) {
            // A ring or not, the stream is under way and then stands still.
            for (int i = 0; i < 20; ++i) send_blocking(node, 8, 1, 2);
            Request* request = survivor_sends ? static_cast<Request*>(&send(node, 1)->request)
                                              : &receive(node, 1)->request;
            node.wait_for([&] { return node.board.arrived[3].load() == 1; });
            EXPECT_FALSE(request->done);
            node.board.stage.store(kReady);
            progress::wait(*request);
            EXPECT_EQ(request->outcome.error, MPI_ERR_PROC_ABORTED);
            expect_nothing_works_any_more(node);
        },
        [&](Node& node) {
            std::deque<Receiving> small;
            for (int i = 0; i < 20; ++i) {
                Receiving& r = small.emplace_back(8, false);
                start_receive(r.request, *node.channel, r.buffer.memory.data(), 8, bytes_type(), 0, 2);
                progress::wait(r.request);
            }
            if (survivor_sends) {
                auto* receiving = receive(node, 0);
                node.wait_for([&] { return receiving->request.moved > kLong / 8; });
            } else {
                auto* sending = send(node, 0);
                node.wait_for([&] { return sending->request.moved > kLong / 8; });
            }
            node.board.arrived[3].store(1);
            sleep_for_ever();
        });
}

TEST(DeadJob, FailsAStreamToIt) {
    stream_that_breaks_off(true, "16");
}
TEST(DeadJob, FailsAStreamToItOnTheBasePath) {
    stream_that_breaks_off(true, "0");
}
TEST(DeadJob, FailsAStreamFromIt) {
    stream_that_breaks_off(false, "16");
}
TEST(DeadJob, FailsAStreamFromItOnTheBasePath) {
    stream_that_breaks_off(false, "0");
}

TEST(DeadJob, ItsLastWordsAreReceived) {
    for (const char* max_direct : {"16", "0"})
        with_victim(
            {{"STARLING_MAX_DIRECT", max_direct}, {"STARLING_DIRECT_THRESHOLD", "4"}},
            [](Node& node) {
                // Let it connect, then let it send without being listened to.
                for (int i = 0; i < 20; ++i) {
                    Receiving r(8, false);
                    start_receive(r.request, *node.channel, r.buffer.memory.data(), 8, bytes_type(), 1, 1);
                    progress::wait(r.request);
                    send_blocking(node, 8, 1, 3);
                }
                node.board.arrived[2].store(1);
                while (node.board.arrived[3].load() != 1) usleep(1000);
                node.board.stage.store(kReady);
                usleep(300000);
                for (int i = 0; i < 30; ++i) {
                    Receiving r(100, false);
                    start_receive(r.request, *node.channel, r.buffer.memory.data(), 100, bytes_type(), 1,
                                  1);
                    progress::wait(r.request);
                    r.expect({1, 0, i, 100, 1, false, false, false});
                }
                // This one needs its sender.
                Receiving r(100000, false);
                start_receive(r.request, *node.channel, r.buffer.memory.data(), 100000, bytes_type(), 1, 1);
                progress::wait(r.request);
                EXPECT_EQ(r.request.outcome.error, MPI_ERR_PROC_ABORTED);
                node.wait_for([&] { return node.peer(1).dead; });
                expect_nothing_works_any_more(node);
            },
            [](Node& node) {
                for (int i = 0; i < 20; ++i) {
                    send_blocking(node, 8, 0, 1);
                    Receiving r(8, false);
                    start_receive(r.request, *node.channel, r.buffer.memory.data(), 8, bytes_type(), 0, 3);
                    progress::wait(r.request);
                }
                while (node.board.arrived[2].load() != 1) usleep(1000);
                for (int i = 0; i < 30; ++i) send_blocking(node, 100, 0, 1, i);
                Sending large({1, 0, 0, 100000, 1, false, false, false});
                large.start(node);
                node.board.arrived[3].store(1);
                sleep_for_ever();
            });
}

// An unexpected message whose sender is gone, streamed: there is no one to ask for it.
TEST(DeadJob, AnOfferOutlivesItsSender) {
    with_victim(
        {{"STARLING_SINGLE_COPY", "off"}},
        [](Node& node) {
            progress::wait_until([&] { return node.channel->queues().find(1, 1) != nullptr; });
            node.board.stage.store(kReady);
            node.wait_for([&] { return node.peer(1).dead; });
            Receiving r(100000, false);
            start_receive(r.request, *node.channel, r.buffer.memory.data(), 100000, bytes_type(), 1, 1);
            progress::wait(r.request);
            EXPECT_EQ(r.request.outcome.error, MPI_ERR_PROC_ABORTED);
        },
        [](Node& node) {
            Sending large({1, 0, 0, 100000, 1, false, false, false});
            large.start(node);
            sleep_for_ever();
        });
}

// A process of a failed job that has not been killed yet still holds a ring of ours.
TEST(DeadJob, AWriterThatStillRunsHarmsNobody) {
    Team team({0, 1, 2});
    team.start({{"STARLING_MAX_DIRECT", "1"}, {"STARLING_DIRECT_THRESHOLD", "4"}}, [](Node& node) {
        if (node.rank == 1) {
            for (int i = 0;; ++i) {
                Sending sending({1, 0, i, 8, 1, false, false, false});
                sending.start(node);
                progress::wait(sending.request);
                node.board.arrived[3].store(i);
            }
        }
        if (node.rank == 0) {
            for (int i = 0; i < 500; ++i) {
                Receiving r(8, false);
                start_receive(r.request, *node.channel, r.buffer.memory.data(), 8, bytes_type(), 1, 1);
                progress::wait(r.request);
                r.expect({1, 0, i, 8, 1, false, false, false});
            }
            EXPECT_GT(counters.opened, 0u);
            node.peer(1).job.segment().header().state.store(boot::JobState::failed);
            node.wait_for([&] { return node.peer(1).dead; });
            node.meet(0, 2);
            for (int i = 0; i < 2000; ++i) {
                Receiving r(8, false);
                start_receive(r.request, *node.channel, r.buffer.memory.data(), 8, bytes_type(), 2, 1);
                progress::wait(r.request);
                r.expect({2, 0, i, 8, 1, false, false, false});
            }
        } else {
            node.meet(0, 2);
            for (int i = 0; i < 2000; ++i) send_blocking(node, 8, 0, 1, i);
        }
    });
    team.expect_success(0);
    team.expect_success(2);
}

}  // namespace
}  // namespace starling::message
