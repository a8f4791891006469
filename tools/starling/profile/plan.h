// A plan: what a later run of the application shall do because of what this one did (docs/profile.md).
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

/// Partners in occurrences from..to of a phase.
struct PlannedPhase {
    std::string name;
    uint64_t from = 1;
    std::optional<uint64_t> to;  ///< none: all later ones
    /// By rank, its partners: (rank, Group::worth), most first.
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
    std::vector<uint32_t> host_of_rank;  ///< indices into `rooms`; empty: ranks stay in order
    std::vector<HostRoom> rooms;
    double bytes_in_order = 0, bytes_placed = 0;  ///< between hosts, with ranks in order and with this placement
    std::string structure;                        ///< of the neighbourhoods, where it was scaled by them
};

struct PlanWish {
    std::optional<uint32_t> max_direct;  ///< none: the knee
    uint32_t size = 0;                   ///< for another number of processes; 0: as recorded
    std::vector<HostRoom> hosts;         ///< their slots, 0 where they are not known; empty: those of the recorded run
};

/// Of the run's first job: the others are spawned, and a plan is for what mpiexec starts. A Refusal if there is nothing to plan.
Plan make_plan(const Run& run, const PlanWish& wish = {});

/// As in the file: JSON, indented, a line per rank.
std::string to_text(const Plan& plan);

}  // namespace starling::analysis
