// The description of a job to start: its programs, and its options.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "job/job_description.h"
#include "launch/common/hosts.h"
#include "launch/common/input_ranks.h"
#include "launch/common/output_style.h"

namespace starling::launch {

struct Plan;

/// The order in which ranks are placed on hosts.
enum class Mapping : uint32_t {
    slot,                 ///< as many ranks on a host as it has slots, then the next host
    node,                 ///< round robin: one rank per host in turn
    core,                 ///< as many ranks on a host as it has cores, then the next host
    node_ranked_by_slot,  ///< as `node`, but the ranks of each host follow each other
    slot_ranked_by_node,  ///< as `slot`, but the ranks are numbered round robin over the hosts
};

/// The variables of mpiexec's environment that reach processes on other hosts. Processes on mpiexec's own host inherit all of them.
enum class Forward : uint32_t {
    usual,  ///< STARLING_..., PATH and LD_LIBRARY_PATH, in addition to the environment of the daemon there
    all,    ///< all variables of mpiexec's environment
    none,   ///< none, not even on mpiexec's host: only variables that are set explicitly
};

/// One command of a job: `count` processes that run the same program.
struct Program {
    std::vector<std::string> argv;  ///< the command and its arguments; argv[0] is looked up in `search_path`
    uint32_t count = 1;
    bool uncounted = false;   ///< true: the command line has no number; the root sets `count` to the slots of the hosts
    std::string directory;    ///< working directory, absolute; empty: the launcher's directory
    std::string search_path;  ///< directories to search for the program, ':'-separated; empty: PATH
    std::vector<std::pair<std::string, std::string>> environment;  ///< variables added to those of the launcher
    Forward forward = Forward::usual;
    int32_t appnum = 0;
    std::vector<uint32_t> soft;    ///< other acceptable numbers of processes, ascending; empty: only `count`
    std::vector<HostSlots> hosts;  ///< hosts where the program may run; empty: all hosts of the job
    Mapping mapping = Mapping::slot;
    uint32_t per_host = 0;                  ///< processes per host; 0: as many as each host has slots
    std::vector<uint32_t> host_of_process;  ///< index in `hosts` for each process, from a rank file; empty: placed by `mapping`
    std::string started_later;  ///< program that the command starts in its own place (mpiexec --debug); empty: argv[0] itself

    /// Returns the program by which users, and plans, know the job.
    const std::string& command() const { return started_later.empty() ? argv[0] : started_later; }
};

/// Value of JobSpec::universe_size: MPI_UNIVERSE_SIZE is not set, because the universe has no limit.
inline constexpr uint32_t kInfiniteUniverse = ~0u;

struct JobSpec {
    std::vector<Program> programs;
    std::string blob;            ///< encoded description of the parents, stored in the job segment
    job::JobId parent = 0;       ///< id of the job that requested the spawn; 0: none
    bool forward_input = false;  ///< true: standard input is passed to the ranks of `input`
    InputRanks input = InputRanks::of_rank(0);
    bool recovers = false;  ///< true: the job survives the death of a rank, and the other ranks get errors
    bool encrypts = false;  ///< true: the user requires encryption between hosts, so the job needs an encrypted universe
    std::shared_ptr<const Plan> plan;  ///< connection plan for this job and its spawned jobs; null: none. Only in the root
    /// MPI_UNIVERSE_SIZE of this job and its spawned jobs. 0: the larger of the hosts' slots and the job's size.
    uint32_t universe_size = 0;
    uint32_t size() const;  ///< number of processes of all programs
    /// Returns the universe size to write into the job segment, 0 if unknown. A spawned job has its parent's size (`inherited`).
    uint32_t shown_universe_size(const uint32_t* inherited, uint32_t slots) const;
};

/// The cores on which processes run.
enum class Binding : uint32_t {
    automatic,  ///< while this user's ranks fit the cores, new ranks start on the least used cores; none is bound
    core,       ///< each process is bound to one core
    none,       ///< the kernel places the processes
};

/// Options of a job that do not change which programs it runs.
struct JobStyle {
    bool tag_output = false;
    bool capture = false;  ///< true: output is sent to the job's root, not to the launcher's own descriptors
    Binding binding = Binding::automatic;
    bool report_bindings = false;
    bool display_map = false;  ///< true: each host prints its ranks
    OutputStyle output;        ///< not part of bits()

    uint32_t bits() const {
        return static_cast<uint32_t>(tag_output | capture << 1 | report_bindings << 2) | static_cast<uint32_t>(binding) << 3 |
               static_cast<uint32_t>(display_map) << kMapBit;
    }
    static constexpr uint32_t kMapBit =
        16;                               // a bit that older releases do not use; the bits from kBits on belong to the messages
    static constexpr uint32_t kBits = 5;  ///< number of bits that bits() uses
    static JobStyle of_bits(uint32_t bits) {
        const uint32_t binding = bits >> 3 & 3;
        return {(bits & 1) != 0,
                (bits & 2) != 0,
                binding > 2 ? Binding::none : static_cast<Binding>(binding),
                (bits & 4) != 0,
                (bits >> kMapBit & 1) != 0,
                {}};
    }
};

/// This host's part of a job that runs on several hosts.
struct JobPart {
    job::JobDescription description;
    uint32_t my_host = job::kNoHost;   ///< this host's index in the description's host table; kNoHost: no rank is here
    std::vector<uint32_t> tree_hosts;  ///< number in the daemon tree, for each host of the description's host table
    uint32_t number = 0;               ///< number of the job within its client (LocalJob::number)
    JobStyle style;
    std::vector<std::string> environment;  ///< variables NAME=value, which add to the daemon's own environment or override it
    bool whole_environment = false;        ///< true: `environment` replaces the daemon's
    bool reads_cannot_run = false;  ///< true: the root reads StartReport::cannot_run, as those of wire version 1.0 do not
};

}  // namespace starling::launch
