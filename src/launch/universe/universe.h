// The universe: the root daemon's record of all hosts, placements and jobs. It makes the decisions; the host agents carry them out.
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
#include "launch/common/placement_preview.h"
#include "launch/process/launcher.h"
#include "launch/tree/tree.h"
#include "launch/universe/host_agent.h"
#include "launch/universe/job_client.h"
#include "launch/universe/name_client.h"
#include "launch/universe/placement.h"

namespace starling::launch {

/// The result of a request to start a job.
struct PlacedOutcome {
    int error_class = 0;
    std::string text;
    job::JobId job = 0;
    bool hosts_lost = false;  ///< true: the job did not start because all its hosts were lost; it may be started by other means
    uint32_t failed_program = 0;  ///< index of the command that failed to start
    uint32_t failed_index = 0;    ///< number of processes of that command that did start
    bool cannot_run = false;      ///< true: the program of that command can't be started
};

/// One host of the universe; its number in the tree is also its number here.
struct UniverseHost {
    enum class HostState { starting, up, failed, lost, alias };
    std::string name;    ///< name of the host as the user wrote it
    uint32_t slots = 0;  ///< number of processes that fit on the host; 0: one per core
    HostState state = HostState::starting;
    HostFacts facts;
    uint32_t placed = 0;     ///< number of processes of all jobs on the host now
    bool offered = true;     ///< true: the host is used for jobs that name no host
    bool suspected = false;  ///< true: the host is up, but its connection may be lost; used only for jobs that name it
    std::string problem;     ///< reason why the host is `failed` or `lost`
    uint32_t same_as =
        job::kNoHost;  ///< in state alias: index of the entry for the same machine. The alias's daemon only passes on messages
};

/// The root of a universe. Single-threaded, on the loop of the tree and the launcher.
class Universe {
  public:
    using Started = std::function<void(const PlacedOutcome&)>;

    /// Creates the universe. `launcher` starts processes on this host. With `tree`, add_hosts() adds hosts; this host is known from the
    /// start, but gets jobs only if it is added too. Without `tree`, this host is the only one.
    Universe(EventLoop& loop, Launcher& launcher, std::optional<TreeSettings> tree);
    Universe(const Universe&) = delete;
    Universe& operator=(const Universe&) = delete;
    ~Universe();

    /// Starts daemons on hosts that are new. `ready` is called when each host is up or has failed: with an empty text if all are up,
    /// otherwise with the first problem.
    void add_hosts(const std::vector<HostSlots>& hosts, bool offered, std::function<void(const std::string&)> ready);
    /// Returns the placement that the job would get now.
    PlacementPreview preview(JobSpec spec);
    /// Places a job on hosts to which no daemon is sent. Only for a universe that starts no job.
    PlacementPreview preview(JobSpec spec, const std::vector<HostSlots>& hosts);
    const std::vector<UniverseHost>& hosts() const { return hosts_; }
    /// Returns whether the host has a daemon, or one that is starting: it is neither unknown nor lost.
    bool has_daemon(std::string_view name) const;
    /// Returns why the job can't be placed on its named hosts that are up (on all hosts if it names none). Returns an empty string if it
    /// can.
    std::string refusal(const JobSpec& spec) const;
    /// Returns a sentence for the user about names that mean the same machine; empty if there are none.
    std::string aliases() const;
    uint32_t offered() const;  ///< number of hosts for jobs that name none
    uint32_t slots() const;
    size_t jobs() const { return jobs_.size(); }
    uint32_t processes() const;

    /// Starts a job for `patron`, which must live until finished() or leave() has been called.
    void submit(const JobSpec& spec, JobClient& patron, Started started);
    /// Registers a job that was started elsewhere and that the launcher has adopted. `patron` must live as for submit().
    void adopt(const launch::LocalJob& here, JobClient& patron);
    /// Passes lines of a profile to `patron` whenever its ranks report. Must be called before `patron` submits a job.
    void write_profiles_of(JobClient& patron);
    /// Lists the processes of the client's jobs by JobClient::show_processes(), each job once. `later_jobs`: whether jobs that start later
    /// will be listed, too (JobClient::lists_processes).
    void list_processes(JobClient& patron, bool later_jobs);
    /// Returns whether the client must read standard input and pass it to input(). It must not if no rank of its first job receives it, or a
    /// single one on the root's own host, which reads it from the root's descriptor.
    bool wants_input(const JobClient& patron) const;
    void signal(JobClient& patron, int signal);
    /// Announces that this process will be suspended. `done` is called when all hosts have been notified. They tolerate its silence until
    /// resume().
    void suspend(std::function<void()> done);
    void resume();
    void input(JobClient& patron, std::string data);
    /// Reports the wait state of each process and its stack, then ends all jobs of the client with exit code 124.
    void time_out(JobClient& patron, int seconds);
    /// Ends all jobs of a job client that has disconnected, without reporting to it.
    void leave(JobClient& patron);
    /// Ends all jobs of the client and reports as usual; `exit_code` becomes mpiexec's exit code unless a failure has set it already.
    void end_jobs(JobClient& patron, int exit_code);
    /// Ends jobs and daemons; `done` is called when none is left, or after a fixed time.
    void shut_down(std::function<void()> done);

    std::function<void(const std::string& sentence)> on_print;  ///< called with messages that concern no job client

    // --- clients of standing daemons that connect on other hosts (launch/daemon/client_relay.h) ---

    void listen_for_clients(const std::string& socket_name, std::function<void()> done);
    std::function<void(uint32_t host, const HostOrder& order)> on_client;
    std::function<void(uint32_t host)> on_clients_lost;  ///< called when a host is lost, with the clients there
    void send_to_client(uint32_t host, uint64_t connection, control::MessageKind kind, const std::string& payload);

  private:
    struct UniverseJob;
    struct Spawn;
    /// A call of add_hosts() whose hosts are not all up yet.
    struct Growth {
        std::vector<uint32_t> hosts;
        std::function<void(const std::string&)> ready;
    };

    // Functions that manage the hosts of the universe.
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
    void check_own_addresses();
    bool has_grown(const Growth& growth, std::string& problem) const;
    void remove_load(uint32_t host, uint32_t processes);
    void free_slot(UniverseJob& job, uint32_t host);

    // Functions that start jobs.
    void display_map(const UniverseJob& job);
    bool place_job(const JobSpec& spec, bool spawned, std::vector<uint32_t>& host_of_rank, std::string& problem);
    std::vector<HostCapacity> capacities() const;
    bool offers_slots(const JobSpec& spec) const;
    bool set_counts(JobSpec& spec, std::string& problem);
    bool prepare(JobSpec& spec, bool spawned, std::vector<uint32_t>& host_of_rank, std::string& problem);
    bool find_rooms(const Program& program, bool spawned, PlacementRequest& request, std::string& problem);
    void start(const JobSpec& spec, JobClient& patron, bool spawned, Started started);
    void describe(UniverseJob& job, std::vector<uint32_t> host_of_rank);
    void send_start(UniverseJob& job);
    bool fits_message(UniverseJob& job, const HostOrder& order);
    void introduce_parent(const UniverseJob& child);
    void on_started(UniverseJob& job, const HostSet& hosts, std::string_view bytes);
    void start_failed(UniverseJob& job);
    void start_done(UniverseJob& job);

    // Functions that list processes for debuggers.
    void list(UniverseJob& job, bool hold);
    HostSet hosts_with_lists(const UniverseJob& job) const;
    void on_processes(UniverseJob& job, const HostSet& hosts, std::string_view bytes);
    void show_listed(JobClient& patron);
    ProcessTable processes_of(const UniverseJob& job) const;

    // Functions that end jobs.
    void on_failed(UniverseJob& job, uint32_t host, const HostOrder& order);
    std::vector<std::string> other_hosts(const UniverseJob& job) const;
    void on_absent(UniverseJob& job, uint32_t host, const HostOrder& order);
    void fail_for_absent(uint32_t host, const HostOrder& absent);
    void fail(UniverseJob& job, int failed_rank, int exit_code);
    void on_input_taken(UniverseJob& job, uint32_t host);
    void pass_on_signal(UniverseJob& job);
    void end_children(UniverseJob& job);
    void grant_time(UniverseJob& job, const FailureReport& report);
    void await_the_others(UniverseJob& job, const FailureReport& report, bool requested);
    void end_late(uint64_t client);
    bool is_connected(const UniverseJob& child) const;
    void continue_without(UniverseJob& job, const RankRuns& ranks, int exit_code);
    void on_hosts_ended(UniverseJob& job, const HostSet& hosts, std::string_view bytes);
    void check_ended(UniverseJob& job);
    void remove(UniverseJob& job, job::JobState state);
    void finish(JobClient& patron);
    void show_stacks(JobClient& patron);
    void on_stacks_shown(JobClient& patron);

    // Functions that handle requests of ranks.
    void on_request(UniverseJob& job, uint32_t host, const HostOrder& order);
    void spawn(UniverseJob& job, uint32_t host, const HostOrder& order);
    void try_spawn(std::shared_ptr<Spawn> spawn);
    void resolve(UniverseJob& job, uint32_t host, const HostOrder& order);
    void begin_profile(const UniverseJob& job);
    void on_profile(const UniverseJob& job, uint32_t host, const HostOrder& order);
    void end_profile(const UniverseJob& job);
    void on_arrived(UniverseJob& job, const HostSet& hosts);
    void answer(uint32_t host, const HostOrder& asked, std::string bytes);
    void send_stub(UniverseJob& job, HostSet hosts);

    // Functions that gather and send the table of a job's ports.
    void on_want_table(UniverseJob& job, const HostSet& hosts);
    void on_host_ports(UniverseJob& job, const HostSet& hosts, std::string_view bytes);
    void send_table(UniverseJob& job);

    // Functions that exchange messages between the root and the host agents.
    void on_message(uint32_t from, std::string_view payload);
    void on_gathered(std::string_view topic, const std::vector<GatheredPiece>& pieces);
    void on_part(UniverseJob& job, OrderKind kind, const HostSet& hosts, std::string_view bytes);
    void on_output(UniverseJob& job, uint32_t host, const HostOrder& order);
    void send_order(uint32_t host, const HostOrder& order);
    void send_order(HostSet hosts, const HostOrder& order);
    void post(std::function<void()> what);
    UniverseJob* find(job::JobId id);
    JobClient* find_client(uint64_t id);
    const UniverseJob* first_job(const JobClient& patron) const;
    UniverseJob* first_job(const JobClient& patron) {
        return const_cast<UniverseJob*>(static_cast<const Universe*>(this)->first_job(patron));
    }
    void detail(const JobClient& patron, const std::string& sentence);

    EventLoop& loop_;
    Launcher& launcher_;
    std::unique_ptr<Tree> tree_;  ///< null: the universe has only this host
    HostAgent deputy_;
    NameClient names_;
    std::vector<UniverseHost> hosts_;
    HostNames host_names_;                                    ///< hosts that can be requested by name
    std::unordered_map<job::HostId, uint32_t> host_with_id_;  ///< numbers of the hosts that are up, by id of the machine
    std::vector<Growth> growing_;
    std::list<UniverseJob> jobs_;
    std::unordered_map<JobClient*, uint32_t> stacks_awaited_;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  ///< false after destruction; checked by posted functions
};

}  // namespace starling::launch
