// What is asked for when a job is started, and how it is to be treated.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "job/job_description.h"
#include "launch/common/hosts.h"

namespace starling::launch {

struct Plan;

/// What the ranks are dealt out over, one after the other.
enum class Mapping : uint32_t {
    slot,  ///< host by host, as many as have room there
    node,  ///< one per host, around and around
    core,  ///< as slot; a slot is a core
};

/// Which variables of mpiexec's environment reach processes on other hosts; on its own host all of them do.
enum class Forward : uint32_t {
    usual,  ///< STARLING_..., PATH and LD_LIBRARY_PATH, on top of what the daemon there has
    all,    ///< every one
    none,   ///< none, here too: only what is set explicitly
};

/// One command of a job: `count` processes that run the same program.
struct Program {
    std::vector<std::string> argv;  ///< argv[0] is looked up in `search_path`
    uint32_t count = 1;
    std::string directory;                                         ///< absolute; empty: the launcher's
    std::string search_path;                                       ///< ':'-separated; empty: PATH
    std::vector<std::pair<std::string, std::string>> environment;  ///< set on top of the launcher's
    Forward forward = Forward::usual;
    int32_t appnum = 0;
    std::vector<uint32_t> soft;    ///< counts that will do as well, ascending; empty: only `count` will
    std::vector<HostSlots> hosts;  ///< where it may run; empty: wherever the job may
    Mapping mapping = Mapping::slot;
    uint32_t per_host = 0;                  ///< 0: by the hosts' slots
    std::vector<uint32_t> host_of_process;  ///< each one's place in `hosts`, by a rank file; empty: by the rules above
};

/// For JobSpec::universe_size: MPI_UNIVERSE_SIZE is not known, since there is no end to it.
inline constexpr uint32_t kInfiniteUniverse = ~0u;

struct JobSpec {
    std::vector<Program> programs;
    std::string blob;                  ///< for the segment: the parents' description, opaque here
    job::JobId parent = 0;             ///< the job that asked for the spawn, 0 if none
    bool forward_input = false;        ///< standard input goes to rank 0
    bool recovers = false;             ///< a rank's death is not the end: the others get errors and go on
    bool encrypts = false;             ///< the user wants it to talk to other hosts under seal: then the universe has to do so
    std::shared_ptr<const Plan> plan;  ///< for this job and what it spawns; null: none. Stays with the root
    /// MPI_UNIVERSE_SIZE of this job and of what it spawns; 0: the slots of the hosts, or the job's size, if that is more.
    uint32_t universe_size = 0;
    uint32_t size() const;  ///< processes of all programs
    /// What goes into a segment: a spawned job has its parent's (`inherited`), 0 means that it is not known.
    uint32_t shown_universe_size(const uint32_t* inherited, uint32_t slots) const;
};

/// Which cores processes get.
enum class Binding : uint32_t {
    automatic,  ///< as long as this user's ranks fit the cores, new ones begin on the least used; nobody is bound
    core,       ///< one core each, for good
    none,       ///< wherever the kernel puts them
};

/// How a job is treated, besides what it runs.
struct JobStyle {
    bool tag_output = false;
    bool capture = false;  ///< output is sent to the job's root instead of to the launcher's own descriptors
    Binding binding = Binding::automatic;
    bool report_bindings = false;

    uint32_t bits() const {
        return static_cast<uint32_t>(tag_output | capture << 1 | report_bindings << 2) | static_cast<uint32_t>(binding) << 3;
    }
    static constexpr uint32_t kBits = 5;  ///< how many bits() uses
    static JobStyle of_bits(uint32_t bits) {
        const uint32_t binding = bits >> 3 & 3;
        return {(bits & 1) != 0, (bits & 2) != 0, binding > 2 ? Binding::none : static_cast<Binding>(binding), (bits & 4) != 0};
    }
};

/// This host's part of a job of several hosts.
struct JobPart {
    job::JobDescription description;
    uint32_t my_host = job::kNoHost;   ///< entry of the description's host table; kNoHost: no rank is here
    std::vector<uint32_t> tree_hosts;  ///< the daemon tree's number of each host in that table
    uint32_t number = 0;               ///< as Job::number
    JobStyle style;
    std::vector<std::string> environment;  ///< NAME=value, on top of the daemon's own or instead of it
    bool whole_environment = false;        ///< instead
};

}  // namespace starling::launch
