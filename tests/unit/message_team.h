// Real processes without a launcher, for tests of messages and of RMA. The test creates the job segments, forks the processes, and plays
// the launcher when one is killed. Processes on different simulated hosts share no memory and communicate by IP over the loopback
// interface; the test plays the daemons that publish their ports.
#pragma once

#include <arpa/inet.h>
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
#include <string_view>
#include <thread>
#include <vector>

#include "base/config.h"
#include "base/counters.h"
#include "base/error.h"
#include "base/lock.h"
#include "datatype/construct.h"
#include "datatype/datatype.h"
#include "job/job_segment.h"
#include "link/peer.h"
#include "message/match.h"
#include "message/point_to_point.h"
#include "message/receive.h"
#include "message/send.h"
#include "progress/engine.h"
#include "transport/shm/region.h"

namespace starling::message::test {

using Setting = std::pair<const char*, const char*>;
using Settings = std::vector<Setting>;

constexpr uint64_t kContext = 0x1230;
/// Longest life of a process, in seconds.
#ifdef __SANITIZE_THREAD__
constexpr unsigned kLongest = 300;
#else
constexpr unsigned kLongest = 250;
#endif

/// Counters in memory that all processes of a test share.
struct Board {
    std::atomic<int> arrived[32];
    std::atomic<int> stage;
};

class Everyone final : public Roster {
  public:
    std::vector<link::Process> members;
    std::deque<link::JobHold> holds;  ///< references that keep the jobs of `members` attached, as a communicator's group does
    int size() const override { return static_cast<int>(members.size()); }
    link::Process at(int rank) const override { return members[static_cast<size_t>(rank)]; }
};

/// The environment of a test's body in its process.
struct Node {
    int rank;
    int size;
    Board& board;
    Everyone everyone;
    std::unique_ptr<MatchContext> channel;

    link::Peer& peer(int other) { return *channel->peer(other); }
    /// Waits, with progress, until all processes have called it.
    void barrier(int which) { meet(which, size); }
    void meet(int which, int count) {
        board.arrived[which].fetch_add(1);
        wait_for([&] { return board.arrived[which].load() >= count; });
    }
    /// Polls without ever sleeping, for conditions that no packet announces.
    void wait_for(const std::function<bool()>& condition) {
        while (!condition()) progress::test();
    }
};

/// The job and the host of each process, numbered from 0 in the order of the processes' jobs.
struct Placement {
    std::vector<int> jobs, hosts;
    int job_count() const { return jobs.back() + 1; }
    int host_count() const { return *std::max_element(hosts.begin(), hosts.end()) + 1; }

    job::JobDescription describe(int job) const {
        job::JobDescription to;
        to.draw();
        // The tests run twice: without encryption and with STARLING_ENCRYPTION=on.
        const char* const encryption = std::getenv("STARLING_ENCRYPTION");
        if (encryption && std::string_view(encryption) == "on") to.draw_network_secret();
        to.several_hosts = host_count() > 1;
        for (int h = 0; h < host_count(); ++h) {
            job::HostEntry& host = to.hosts.emplace_back();
            host.id = job::this_host();
            std::snprintf(host.name, sizeof host.name, "host%d", h);
            host.addresses = 1;
            host.ipv4[0] = htonl(INADDR_LOOPBACK);
        }
        std::vector<uint32_t> host_of_rank, next_local(to.hosts.size());
        for (size_t i = 0; i < jobs.size(); ++i)
            if (jobs[i] == job) host_of_rank.push_back(static_cast<uint32_t>(hosts[i]));
        to.size = to.universe_size = static_cast<uint32_t>(host_of_rank.size());
        to.placements = job::fold_placements(host_of_rank, 0, next_local);
        return to;
    }
};

/// Processes of one or several jobs, on one or several hosts.
class Team {
  public:
    explicit Team(std::vector<int> jobs) : Team(Placement{jobs, std::vector<int>(jobs.size(), 0)}) {}
    explicit Team(Placement placement) : place_(std::move(placement)), segments_(static_cast<size_t>(place_.job_count())) {
        void* memory = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        board_ = static_cast<Board*>(memory);
        for (int j = 0; j < place_.job_count(); ++j) {
            const job::JobDescription job = place_.describe(j);
            auto& of_job = segments_[static_cast<size_t>(j)];
            of_job.resize(job.hosts.size());
            for (uint32_t h = 0; h < of_job.size(); ++h)
                EXPECT_EQ(job::JobSegment::create(job, h, of_job[h]), MPI_SUCCESS) << failure_text();
        }
    }
    ~Team() {
        for (const pid_t pid : pids_)
            if (pid > 0) kill(pid, SIGKILL), waitpid(pid, nullptr, 0);
        over_.store(true);
        if (daemon_.joinable()) daemon_.join();
        munmap(board_, sizeof(Board));
    }

    void start(const Settings& settings, const std::function<void(Node&)>& body) {
        for (size_t i = 0; i < place_.jobs.size(); ++i) {
            const pid_t pid = fork();
            if (pid == 0) run(static_cast<int>(i), settings, body);
            pids_.push_back(pid);
        }
        if (place_.host_count() > 1) daemon_ = std::thread([this] { spread_ports(); });
    }
    /// Waits for the process to end, and checks its exit status.
    void expect_success(size_t i) {
        int status = 0;
        waitpid(pids_[i], &status, 0);
        pids_[i] = 0;
        EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "process " << i << " ended with status " << status;
    }
    void expect_success() {
        for (size_t i = 0; i < pids_.size(); ++i) expect_success(i);
    }
    /// Kills the process and marks its job as a launcher would.
    void kill_process(size_t i) {
        kill_silently(i);
        for (auto& segment : segments_[static_cast<size_t>(place_.jobs[i])])
            segment.header().state.store(job::JobState::failed);
    }
    /// Kills the process without reporting it to its job.
    void kill_silently(size_t i) {
        kill(pids_[i], SIGKILL);
        waitpid(pids_[i], nullptr, 0);
        pids_[i] = 0;
    }
    Board& board() { return *board_; }
    /// Returns the port word of a rank in a host's address table.
    std::atomic<uint32_t>& port(int job, int host, uint32_t rank) {
        return segments_[static_cast<size_t>(job)][static_cast<size_t>(host)].port(rank);
    }

  private:
    // Plays the daemons: copies every rank's port into the address tables of all hosts, unasked.
    void spread_ports() {
        for (; !over_.load(); usleep(500))
            for (auto& of_job : segments_)
                for (uint32_t rank = 0; rank < of_job[0].header().size; ++rank) {
                    const uint32_t word = of_job[of_job[0].host_of(rank)].port(rank).load();
                    for (auto& segment : of_job)
                        if (segment.port(rank).load() < word) segment.port(rank).store(word);
                }
    }

    [[noreturn]] void run(int me, const Settings& settings, const std::function<void(Node&)>& body) {
        alarm(kLongest);
        for (const auto& [name, value] : settings) EXPECT_EQ(set_variable(name, value), MPI_SUCCESS) << failure_text();
        const auto host = static_cast<size_t>(place_.hosts[static_cast<size_t>(me)]);
        std::vector<link::Job*> jobs;
        std::vector<uint32_t> ranks(segments_.size());
        for (const auto& of_job : segments_) jobs.push_back(link::find_job(of_job[host].address()));
        Node node{me, static_cast<int>(place_.jobs.size()), *board_, {}, nullptr};
        for (const int job : place_.jobs) {
            node.everyone.members.push_back({jobs[job], ranks[job]++});
            node.everyone.holds.emplace_back(jobs[job]);
        }
        const link::Process self = node.everyone.members[me];
        job::JobSegment& own = segments_[place_.jobs[me]][host];
        // No daemon may be asked or started: spread_ports() publishes what a daemon would answer.
        std::snprintf(own.header().control_socket, sizeof own.header().control_socket, "starling-test-nobody");
        own.cell(self.rank).pid.store(getpid());
        link::adopt_own_job(std::move(own), self.rank);
        message::start();
        EXPECT_EQ(link::start(), MPI_SUCCESS) << failure_text();
        for (link::Job* job : jobs) EXPECT_EQ(job->map(), MPI_SUCCESS) << failure_text();
        if (config().wait == WaitPolicy::thread) allow_threads(Threads::at_once);
        Lock lock;  // holds the library's lock as entry points do: a progress thread may run beside this one
        progress::start();
        node.channel = std::make_unique<MatchContext>(kContext, node.everyone, me);
        body(node);
        std::fflush(nullptr);
        _exit(::testing::Test::HasFailure() ? 1 : 0);
    }

    Placement place_;
    std::vector<std::vector<job::JobSegment>> segments_;  ///< job segments, by job and host
    std::vector<pid_t> pids_;
    std::thread daemon_;
    std::atomic<bool> over_{false};
    Board* board_;
};

}  // namespace starling::message::test
