// The daemons of the simulated hosts: they create the job's segments, answer the ranks' requests, and mark dead ranks.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "control/control_protocol.h"
#include "descriptors.h"
#include "job/job_segment.h"
#include "plans.h"

namespace starling::simulation {

/// A job besides the first one: ranks of another job spawn it, or it starts by itself.
struct FurtherJob {
    std::vector<uint32_t> host_of_rank;  ///< hosts of the world
    uint32_t first = 0;                  ///< number of its first process among the processes of all jobs
    bool starts_alone = false;           ///< whether it starts with the world, like a job of another mpiexec
};

/// Hosts of the ranks, and the job's settings that depend on hosts.
struct Placement {
    std::vector<uint32_t> host_of_rank;
    uint32_t hosts = 1;
    uint32_t cores = 1;  ///< cores per host
    bool recovers = false;
    Plans plans{0};
    std::vector<std::string> given_plans;  ///< daemons' replies with a plan that a program run was given, by rank; empty: none
    bool encrypts = false;                 ///< whether packets between hosts are encrypted
    bool replaces = false;                 ///< whether ranks may start processes that replace dead ones
    std::vector<FurtherJob> further;       ///< jobs number 1, 2, …

    /// Returns the number of processes of all jobs.
    uint32_t processes() const {
        return further.empty() ? static_cast<uint32_t>(host_of_rank.size())
                               : further.back().first + static_cast<uint32_t>(further.back().host_of_rank.size());
    }
};

/// A job that has started, as the daemons know it.
struct KnownJob {
    uint32_t number = 0;
    job::JobDescription description;
    std::vector<uint32_t> host_of_rank;     ///< hosts of the world
    std::vector<job::JobSegment> segments;  ///< by host of the world; empty: the host does not know the job
    std::vector<struct stat> files;         ///< of the segments; ranks ask often whether a descriptor is one of them
    std::vector<std::string> variables;     ///< STARLING_JOB of its ranks, by host
    uint32_t ranks_hosts = 0;               ///< number of hosts with ranks of the job
    uint32_t arrived = 0;                   ///< number of hosts whose ranks have all reached the end of MPI_Init
    std::vector<bool> has_arrived;          ///< by host: whether it is counted in `arrived`
    uint32_t left = 0;                      ///< number of ranks that have not ended
    job::JobId parent = 0;                  ///< the job that has spawned it; 0: none
    bool connected = false;                 ///< whether it ends with its parent
    bool failing = false;                   ///< whether the daemons are killing its ranks
    bool over = false;                      ///< whether all its ranks have ended
    std::vector<std::string> arguments;     ///< of the command that has spawned it
    const Process* spawner = nullptr;       ///< the process that has asked for it
    std::vector<uint32_t> dead;             ///< ranks that have died

    bool all_arrived() const { return arrived == ranks_hosts; }
};

class Daemons {
  public:
    /// Starts a process of a further job: adds it to the world.
    using Start = std::function<void(uint32_t job, uint32_t rank)>;
    /// Places the ranks of a job that a program spawns; returns false if a command can't be started. The ranks' first process number is
    /// set before.
    using Prepare = std::function<bool(const control::SpawnRequest& request, FurtherJob& out)>;

    Daemons(World& world, const Placement& placement);
    ~Daemons();

    /// Returns the plan of a further job, by its number.
    const FurtherJob& further(uint32_t job) const { return placement_.further[job - 1]; }
    /// The command by which ranks start processes that replace dead ones.
    static constexpr const char* kSubstitute = "substitute";
    /// Returns the program's name by which ranks spawn this job.
    static std::string command_of(uint32_t job);
    /// Starts the jobs that start by themselves; `start` starts their processes, and later those of spawned jobs.
    void start_further(Start start);
    /// Lets ranks spawn any number of jobs, which no script has drawn.
    void allow_spawns(Start start, Prepare prepare);

    /// Return the job variables in a rank's environment.
    const char* job_variable(const Process& of) const { return jobs_[of.job]->variables[of.host].c_str(); }
    const char* rank_variable(uint32_t rank) const { return rank_variables_[rank].c_str(); }
    /// Returns the mapping of the segment that is open as this file; null if the file is not a segment. All ranks of a host share one
    /// mapping.
    void* mapping(int fd) const;
    bool is_mapping(const void* memory) const;
    uint32_t cores() const { return placement_.cores; }

    /// Kills the rank: its host's kernel closes its descriptors, the daemons mark it as dead and ring the other ranks.
    void kill(Process& process);
    /// Records that a rank has ended by itself.
    void note_end(Process& process);

    /// Ends all jobs on behalf of a rank (MPI_Abort and the like): its daemon reports it, and all other ranks are killed.
    [[noreturn]] void end_job(Process& by);
    bool is_ending() const { return is_ending_; }

    /// Returns the jobs by number; null: the job has not started.
    const std::vector<std::unique_ptr<KnownJob>>& jobs() const { return jobs_; }
    Process& daemon_of(uint32_t host) { return *daemons_[host]; }

    /// Carries out a request that a rank sends to the daemon of its host.
    void on_request(Process& asker, const control::ControlFrame& frame, int fd);

  private:
    /// Returns the time of a message between a process and a daemon. Runs of seeds draw it, below `most`.
    uint64_t word_ns(uint64_t most);
    /// Returns the plan for a rank, as a daemon sends it.
    std::string plan_of(const Process& of) const;
    /// Describes a job whose host table has these hosts of the world.
    job::JobDescription describe(const std::vector<uint32_t>& host_of_rank, const std::vector<uint32_t>& hosts);
    KnownJob& create(uint32_t number, job::JobDescription description, std::vector<uint32_t> host_of_rank);
    void create_segment(KnownJob& job, uint32_t host, uint32_t entry);
    void make_stub(KnownJob& job, uint32_t host);
    KnownJob* find(job::JobId id) const;
    KnownJob& start_job(uint32_t number, std::string blob, job::JobId parent);
    void fail(KnownJob& job);
    /// Returns the number of the job that the request spawns; that of no job if it can't be started.
    uint32_t job_for(const control::SpawnRequest& request);
    void at_hosts(uint64_t begin, const std::function<void(uint32_t host)>& what);

    void on_locate(Process& asker, const control::JobQuery& query, int fd);
    void on_abandoned(const control::JobQuery& query, const Process& by);
    void on_arrived(KnownJob& job, uint32_t host);
    void on_plan(Process& asker, int fd);
    void on_spawn(Process& asker, const control::SpawnRequest& request, int fd);
    void on_name(Process& asker, control::MessageKind kind, const control::NameRequest& request, int fd);
    void on_resolve(Process& asker, const control::JobQuery& query, int fd);
    void on_disconnect(Process& asker, const control::DisconnectNotice& notice, int fd);
    void on_forsake(Process& asker, const control::JobQuery& query, int fd);

    void mark_dead(KnownJob& job, uint32_t rank, uint32_t host);
    void ring(const KnownJob& job, uint32_t rank);
    void ring_ranks(const KnownJob& job, uint32_t host);
    void ring_everyone(uint32_t host);
    void answer(Process& asker, KnownJob& about, uint32_t rank, int fd);
    uint32_t add_further(FurtherJob made);
    bool has_several_jobs() const { return placement_.replaces || !placement_.further.empty(); }
    bool reply(Process& to, int fd, std::string_view payload);
    void reply_later(Process& to, int fd, uint64_t delay, std::function<std::string()> payload);

    World& world_;
    Placement placement_;
    std::vector<std::unique_ptr<KnownJob>> jobs_;
    std::vector<Process*> daemons_;
    std::deque<std::string> rank_variables_;    ///< ranks keep pointers into them
    std::map<std::string, std::string> names_;  ///< published ports, by service
    Start start_;
    Prepare prepare_;  ///< empty: a script has drawn all jobs
    bool is_ending_ = false;
};

Daemons* daemons();

/// A rank's end of its connection to the daemon.
struct ControlSocket final : Descriptor {
    control::FrameDecoder decoder{control::kMaxFrame};
    std::string replies;
    uint32_t rank = 0;

    using Descriptor::Descriptor;
    uint32_t events() const override { return (replies.empty() ? 0u : EPOLLIN) | EPOLLOUT; }
    void send(std::string_view bytes, int fd);
};

}  // namespace starling::simulation
