// The universe as its root knows it: the hosts, what was placed where, the jobs and their state. It decides; its
// deputies on the hosts do.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "control/control_protocol.h"
#include "launch/common/host_facts.h"
#include "launch/common/order.h"
#include "launch/process/launcher.h"
#include "launch/tree/tree.h"
#include "launch/universe/host_agent.h"
#include "launch/universe/job_client.h"
#include "launch/universe/name_client.h"
#include "launch/universe/placement.h"

namespace starling::launch {

/// What became of a request to start a job.
struct PlacedOutcome {
    int error_class = 0;
    std::string text;
    job::JobId job = 0;
    uint32_t failed_program = 0;  ///< which command could not be started,
    uint32_t failed_index = 0;    ///< and how many of its processes could
};

/// One host of the universe; its number is the tree's.
struct UniverseHost {
    enum class State { starting, up, failed, lost, alias };
    std::string name;    ///< as the user gave it
    uint32_t slots = 0;  ///< 0: as many as cores
    State state = State::starting;
    HostFacts facts;
    uint32_t placed = 0;    ///< processes of all jobs there now
    bool offered = true;    ///< jobs that name no host may go there
    bool doubtful = false;  ///< up, but perhaps lost: only what names it goes there
    std::string problem;    ///< when failed or lost
    uint32_t same_as =
        job::kNoHost;  ///< an alias: the host that it is. Its daemon carries messages for others and does nothing else
};

/// Single-threaded, on the loop of the tree and the launcher.
class Universe {
  public:
    using Started = std::function<void(const PlacedOutcome&)>;

    /// `launcher` is this host's. With `tree` hosts come by add_hosts(); this one is there from the beginning, but jobs
    /// are placed on it only if it is among them. Without it this host is all there is, and will be.
    Universe(EventLoop& loop, Launcher& launcher, std::optional<TreeSettings> tree);
    Universe(const Universe&) = delete;
    Universe& operator=(const Universe&) = delete;
    ~Universe();

    /// Starts daemons on those that are new. `ready` is called when each of them is up or has failed: with an empty
    /// sentence if all are up, else with what is wrong with the first.
    void add_hosts(const std::vector<HostSlots>& hosts, bool offered, std::function<void(const std::string&)> ready);
    const std::vector<UniverseHost>& hosts() const { return hosts_; }
    bool knows(std::string_view name) const { return find_host(name) != job::kNoHost; }
    /// Why a job can't be placed on what is up of the hosts that it names, or, if it names none, of all; empty if it can.
    std::string refusal(const JobSpec& spec) const;
    /// For the user: names that have turned out to mean one machine. Empty if there are none.
    std::string aliases() const;
    uint32_t offered() const;  ///< hosts that jobs may go to which name none
    uint32_t slots() const;
    size_t jobs() const { return jobs_.size(); }
    uint32_t processes() const;

    /// Starts a job for `patron`, which must live until finished() was called or leave().
    void submit(const JobSpec& spec, JobClient& patron, Started started);
    /// Takes on a job that others have started and the launcher has adopted; the same holds for its patron.
    void adopt(const launch::Job& here, JobClient& patron);
    /// What the ranks of the patron's jobs report goes to it as lines of a profile. Before it submits one.
    void write_profiles_of(JobClient& patron);
    /// Whether rank 0 of the patron's first job is on the root's own host.
    bool reads_here(const JobClient& patron) const;
    void signal(JobClient& patron, int signal);
    /// This process is about to be stopped: `done` is called when all hosts know. They bear its silence until resume().
    void suspend(std::function<void()> done);
    void resume();
    void input(JobClient& patron, std::string data);
    /// Says what each process waits for and shows stacks, then ends all its jobs with exit code 124.
    void time_out(JobClient& patron, int seconds);
    /// The patron is gone: all its jobs end, and nobody is told.
    void leave(JobClient& patron);
    /// Its jobs end, and all is told; mpiexec's exit code is this, if nothing has failed before.
    void end_jobs(JobClient& patron, int exit_code);
    /// Ends jobs and daemons; `done` is called when nothing is left, or after a stated time.
    void shut_down(std::function<void()> done);

    std::function<void(const std::string& sentence)> on_say;  ///< what concerns no patron

    // --- clients of standing daemons that come in on other hosts (launch/daemon/client_relay.h) ---

    void listen_for_clients(const std::string& socket_name, std::function<void()> done);
    std::function<void(uint32_t host, const Order& order)> on_client;
    std::function<void(uint32_t host)> on_clients_lost;  ///< with their host
    void send_to_client(uint32_t host, uint64_t connection, control::MessageKind kind, const std::string& payload);

  private:
    struct Job;
    struct Spawn;
    /// Hosts that someone waits for.
    struct Growth {
        std::vector<uint32_t> hosts;
        std::function<void(const std::string&)> ready;
    };

    // hosts
    void listen_to_tree();
    uint32_t find_host(std::string_view name) const;
    void on_host_ready(uint32_t host, std::string_view facts);
    void recognize(uint32_t host);
    void make_alias(uint32_t host, uint32_t of);
    bool is_in_use(uint32_t host) const;
    void forget_machine(uint32_t host);
    void replace_name(uint32_t host);
    void on_host_failed(uint32_t host, const std::string& sentence);
    void on_host_lost(uint32_t host, const std::string& sentence);
    std::vector<uint32_t> offered_hosts() const;
    void check_growth();
    void look_at_own_addresses();
    bool has_grown(const Growth& growth, std::string& problem) const;
    void remove_load(uint32_t host, uint32_t processes);

    // starting
    bool place_job(const JobSpec& spec, bool spawned, std::vector<uint32_t>& host_of_rank, std::string& problem);
    bool find_rooms(const Program& program, bool spawned, PlacementRequest& request, std::string& problem);
    void start(const JobSpec& spec, JobClient& patron, bool spawned, Started started);
    void describe(Job& job, std::vector<uint32_t> host_of_rank);
    void send_start(Job& job);
    bool fits_message(Job& job, const Order& order);
    void introduce_parent(const Job& child);
    void on_started(Job& job, const HostSet& hosts, std::string_view bytes);
    void start_failed(Job& job);
    void start_done(Job& job);

    // ending
    void on_failed(Job& job, uint32_t host, const Order& order);
    std::vector<std::string> other_hosts(const Job& job) const;
    void on_absent(Job& job, uint32_t host, const Order& order);
    void fail_for_absent(uint32_t host, const Order& absent);
    void fail(Job& job, int failed_rank, int exit_code);
    bool is_connected(const Job& child) const;
    void go_on_without(Job& job, const RankRuns& ranks, int exit_code);
    void on_gone(Job& job, const HostSet& hosts, std::string_view bytes);
    void check_over(Job& job);
    void remove(Job& job, job::JobState state);
    void patron_lost_a_job(JobClient& patron);
    void show_stacks(JobClient& patron);
    void on_stacks_shown(JobClient& patron);

    // requests of ranks
    void on_ask(Job& job, uint32_t host, const Order& order);
    void spawn(Job& job, uint32_t host, const Order& order);
    void try_spawn(std::shared_ptr<Spawn> spawn);
    void resolve(Job& job, uint32_t host, const Order& order);
    void begin_profile(const Job& job);
    void on_profile(const Job& job, uint32_t host, const Order& order);
    void end_profile(const Job& job);
    void on_arrived(Job& job, const HostSet& hosts);
    void answer(uint32_t host, const Order& asked, std::string bytes);
    void send_stub(Job& job, HostSet hosts);

    // the table of a job's ports
    void on_want_table(Job& job, const HostSet& hosts);
    void on_host_ports(Job& job, const HostSet& hosts, std::string_view bytes);
    void send_table(Job& job);

    // messages
    void on_message(uint32_t from, std::string_view payload);
    void on_gathered(std::string_view topic, const std::vector<GatheredPiece>& pieces);
    void on_piece(Job& job, OrderKind kind, const HostSet& hosts, std::string_view bytes);
    void on_output(Job& job, uint32_t host, const Order& order);
    void tell(uint32_t host, const Order& order);
    void tell(HostSet hosts, const Order& order);
    void post(std::function<void()> what);
    Job* find(job::JobId id);
    const Job* first_job(const JobClient& patron) const;
    void detail(const JobClient& patron, const std::string& sentence);

    EventLoop& loop_;
    Launcher& launcher_;
    std::unique_ptr<Tree> tree_;  ///< null: this host is alone
    HostAgent deputy_;
    NameClient names_;
    std::vector<UniverseHost> hosts_;
    HostNames host_names_;                                    ///< those that may be asked for
    std::unordered_map<job::HostId, uint32_t> host_with_id_;  ///< which of those that are up is that machine
    std::vector<Growth> growing_;
    std::list<Job> jobs_;
    std::unordered_map<JobClient*, uint32_t> stacks_awaited_;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  ///< for what is posted
};

}  // namespace starling::launch
