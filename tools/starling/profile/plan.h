// Creates a plan for later runs of an application from the profile of an earlier run (docs/profile.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "algorithms.h"
#include "placement.h"
#include "run.h"

namespace starling::analysis {

/// The partners in occurrences from..to of a phase.
struct PlannedPhase {
    std::string name;
    uint64_t from = 1;
    std::optional<uint64_t> to;  ///< last occurrence; none: the phase also applies to all later occurrences
    /// By rank: its partners as (rank, Group::worth), in descending order of worth.
    std::vector<std::vector<std::pair<uint32_t, uint64_t>>> peers;
};

struct Plan {
    std::string application;
    uint32_t size = 0;
    std::vector<std::string> from;
    uint32_t max_direct = 0, max_connections = 0;
    std::vector<PlannedPhase> phases;
    std::vector<PlannedCollective> collectives;
    std::optional<uint64_t> eager_limit;
    std::vector<uint32_t> host_of_rank;  ///< each rank's host, as an index into `rooms`; empty: ranks are placed in order
    std::vector<HostRoom> rooms;
    double bytes_in_order = 0, bytes_placed = 0;  ///< bytes between hosts, with ranks in order and as placed
    std::string structure;                        ///< structure by which the plan was scaled; empty: not scaled
};

struct PlanWish {
    std::optional<uint32_t> max_direct;  ///< maximum connections per process; none: the knee of the what-if curve
    uint32_t size = 0;                   ///< number of processes to plan for; 0: as recorded
    std::vector<HostRoom> hosts;         ///< hosts with slots, 0 if unknown; empty: those of the recorded run
};

/// Creates a plan for the run's first job only: other jobs are spawned, and a plan is for jobs that mpiexec starts. Throws a Refusal if
/// there is nothing to plan.
Plan make_plan(const Run& run, const PlanWish& wish = {});

/// Returns the text of the plan file: indented JSON with a line per rank.
std::string to_text(const Plan& plan);

}  // namespace starling::analysis
