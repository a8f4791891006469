// The program of a simulation, drawn from its seed before it starts: placement of ranks, settings of the library, the ranks' operations,
// and the faults meanwhile. It is correct by construction. All ranks follow one list of steps in order, each rank those that involve it. So
// some step can always proceed, and the list determines the result of each receive.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "daemon.h"
#include "devices.h"
#include "features.h"
#include "network.h"
#include "random.h"

namespace starling::simulation {

enum class Kind : uint8_t {
    message,         ///< a message from one rank to another
    exchange,        ///< messages between two ranks, in both directions at once
    crowd,           ///< several messages to one rank that receives from any source; consecutive in the list
    cancel_send,     ///< a send, perhaps cancelled, and received if not
    cancel_receive,  ///< a receive that is cancelled, with or without a message for it
    collective,
    split,
    duplicate,
    release,    ///< frees a communicator
    compute,    ///< one rank computes
    phase,      ///< all ranks complete their operations and begin phase number `count`
    window,     ///< a window is made, used in `count` epochs and freed; if any_tag, by MPI_Win_create
    symmetric,  ///< OpenSHMEM's memory and teams, in `count` rounds of all ranks
    spawn,      ///< a communicator spawns job number `job`; 0: a program that does not exist, `count` times
    connect,    ///< communicators `comm` and `other` connect by a port of rank `from` of the first, and rank `to` of the second
    across,     ///< collective operation of an inter-communicator
    merge,      ///< MPI_Intercomm_merge; if any_tag, the remote group comes first
    disconnect,  ///< MPI_Comm_disconnect
    survive,     ///< the living agree on, revoke and shrink their job's MPI_COMM_WORLD; the last step, if any
    files,       ///< the living open, use and close `count` + 1 files one after the other; the last step, if any
    replace,     ///< the living replace the dead of their job's MPI_COMM_WORLD, at least `count` times; the last step, if any
};

enum class SendWay : uint8_t { send, ssend, isend, issend, persistent };
enum class ReceiveWay : uint8_t { recv, irecv, persistent, probe, mprobe, iprobe, test };
enum class Collective : uint8_t {
    barrier,
    bcast,
    reduce,
    allreduce,
    gather,
    scatter,
    allgather,
    alltoall,
    reduce_scatter,
    scan,
    exscan
};
inline constexpr int kCollectives = 11;

struct Step {
    Kind kind;
    uint32_t id = 0;  ///< index of the step in the list; determines the payload
    uint32_t comm = 0;
    int from = 0, to = 0;  ///< ranks of the communicator that take part; `from` is the root
    int tag = 0;
    uint32_t bytes = 0;
    SendWay send = SendWay::send;
    ReceiveWay receive = ReceiveWay::recv;
    bool any_tag = false;
    bool strided_out = false, strided_in = false;  ///< whether the sender's and the receiver's data have gaps between words
    bool waits = true;                             ///< whether the rank completes its operations before the next step
    uint32_t crowd = 0, place = 0;  ///< number of the crowd's first step, and the index of this receive in the crowd
    Collective collective = Collective::barrier;
    uint32_t count = 0;  ///< number of elements per rank
    uint32_t made = 0;   ///< split, duplicate, spawn, connect, merge: first communicator that it creates
    uint32_t other = 0;  ///< connect: communicator that connects to the port
    uint32_t job = 0;    ///< spawn: number of the job
    uint32_t colors = 1;
    uint64_t ns = 0;
};

/// A communicator of the script. Each one that a split creates has an entry.
struct Community {
    std::vector<uint32_t> members;  ///< numbers of processes (Process::number), in order
    /// The other group of an inter-communicator; empty: an intra-communicator. An inter-communicator has two entries, one per direction of
    /// its messages, the second after the first.
    std::vector<uint32_t> remote = {};
    bool predefined = false;  ///< whether it is MPI_COMM_WORLD or MPI_COMM_SELF
    bool second = false;      ///< whether it is the second entry of an inter-communicator
    int rank_of(uint32_t number) const;
    bool is_inter() const { return !remote.empty(); }
    /// Returns the processes to which ranks of messages refer.
    const std::vector<uint32_t>& receivers() const { return is_inter() ? remote : members; }
};

/// A job of the script. The first one has number 0.
struct ScriptJob {
    uint32_t world = 0;       ///< its MPI_COMM_WORLD
    uint32_t parent = 0;      ///< its communicator with the parents; 0: it was not spawned
    uint32_t first_step = 0;  ///< first step in which its ranks can take part; the spawn, if it was spawned
};

/// A fault and its time.
struct Fault {
    enum class Kind : uint8_t { rail_down, rail_up, silent, heard, death, device_out, device_in } kind;
    uint64_t at = 0;  ///< ns after the start, or after the rank begins the step
    uint32_t host = 0, rail = 0;
    uint32_t rank = 0;           ///< number of the process that dies; the time of a spawned one counts from its start
    uint32_t step = UINT32_MAX;  ///< step in which the rank dies; UINT32_MAX: none
    /// The rank's call of MPIX_Comm_replace, or on a file, from 1, after whose begin `at` counts; 0: none.
    uint32_t call = 0;
};

/// The death of a process that was started to replace another one.
struct SubstituteDeath {
    enum class When : uint8_t { never, after_start, before_call, in_call } when = When::never;
    uint64_t at = 0;  ///< ns after the start, or after the begin of its call
};

struct Script {
    /// `plain`: without several jobs, whatever the seed draws.
    explicit Script(uint64_t seed, uint32_t wanted_ranks = 0, bool plain = false);
    /// A job like real programs, without faults: hosts of 64 ranks, each host with a device. All ranks communicate with their neighbors in
    /// a grid, then with all others.
    static Script large(uint32_t ranks);
    /// A job with one rank per host, each with a device, whose partners change from phase to phase and return. A rank has more partners
    /// than it may have connections at a time, so that a plan has something to learn.
    static Script phased(uint32_t ranks);

    uint64_t seed;
    const char* name = "";  ///< name of the kind of faults
    uint32_t ranks = 2, rails = 1;
    Placement placement;
    Weather weather;
    DeviceWeather devices;
    std::vector<std::pair<std::string, std::string>> settings;
    std::vector<Community> communities;
    std::vector<ScriptJob> jobs = {{}};
    std::vector<Step> steps;
    std::vector<Fault> faults;
    std::vector<bool> doomed;   ///< whether a process may die, by number
    std::vector<bool> leaving;  ///< whether a rank finalizes in the step `survive`, while others go on; empty: none does
    bool mortal = false;        ///< whether some ranks will die
    bool keeps = false;         ///< whether the step `replace` uses a store of blocks, and also shrinks
    uint32_t spare_copies = 0;  ///< processes that may be started to replace dead ones
    /// Whether OpenSHMEM is used, whether it starts before MPI, and whether it ends after MPI.
    bool symmetric = false, symmetric_first = false, symmetric_last = false;

    /// Returns how the process with this number dies that belongs to the substitutes' job number `job`.
    SubstituteDeath death_of_substitute(uint32_t job, uint32_t number) const;
    /// Returns the number of copies of the library that the run is likely to need.
    uint32_t copies() const { return processes() + spare_copies; }
    /// Returns the features that the seed has drawn; the run decides which of them are used.
    Features drawn() const;
    /// Returns whether the process with this rank in a group will die.
    bool fails_with(const std::vector<uint32_t>& group, int rank) const { return doomed[group[static_cast<size_t>(rank)]]; }
    uint32_t processes() const { return placement.processes(); }
    bool has_setting(const std::string& setting, const std::string& value) const;
    /// Returns whether the communicator has processes of several jobs.
    bool spans_jobs(const Community& of) const;
    std::string describe() const;

  private:
    Script() : seed(1) {}
    void place(Random& random, uint32_t wanted_ranks);
    void set(Random& random);
    void set_multicast(Random random);
    void set_turns(Random random);
    void set_devices(Random random);
    void set_threads(Random random);
    void add_absences(Random random);
    void trouble(Random& random);
    void move_deaths(Random random);
    void write(Random& random);
    static Script with_devices(uint32_t ranks, uint32_t hosts);
    void write_large();
    void write_phased();
    void add_message(uint32_t from, uint32_t to);
    void write_step(Random& random, uint32_t community);
    void write_message(Random& random, Step step);
    void write_crowd(Random& random, Step step);
    void write_collective(Random& random, Step step);
    void write_communities(Random& random, Step step);
    void write_window(Random& random, Step step);
    void write_symmetric(Random& random, Step step);
    void begin_jobs(Random& random);
    void write_jobs(Random& random);
    uint32_t add_job(Random& random, bool starts_alone);
    void write_spawn(Random& random, uint32_t community);
    uint32_t add_self(Random& random);
    void add_deaths_in_spawns(Random random);
    void add_survival(Random random);
    void let_some_leave(Random random);
    void add_files(Random random);
    void add_replacement(Random random);
    bool may_be_forsaken(uint32_t job) const;
    void write_connect(Random& random);
    void write_between_jobs(Random& random);
    void write_across(Random& random, Step step);
    uint32_t draw_community(Random& random, bool inter);
    void add_inter(const std::vector<uint32_t>& members, const std::vector<uint32_t>& remote);
    Step& add(Step step);
    uint32_t draw_bytes(Random& random);

    std::vector<bool> released_;
    bool has_jobs_ = false, has_threads_ = false;
    uint64_t bytes_left_ = 0;
    int next_tag_ = 1000;
};

}  // namespace starling::simulation
