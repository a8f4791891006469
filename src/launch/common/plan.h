// A connection plan for all ranks of a job. mpiexec reads it from a file (launch/client/plan_file.h), the universe's root stores it, and
// each rank asks the root for its part.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/wire.h"
#include "control/plan_reply.h"

namespace starling::launch {

struct Plan {
    struct PlanPhase {
        std::string name;
        uint64_t from = 1, to = 1;
        std::map<uint32_t, std::vector<control::PlannedPeer>> peers;  ///< peers by rank; may lack ranks without peers
        bool operator==(const PlanPhase&) const = default;
    };
    std::string application;  ///< base name of the application's command
    uint32_t size = 0;        ///< number of processes for which the plan is made
    control::PlanLimits limits;
    std::vector<PlanPhase> phases;
    std::string collectives;  ///< the plan's algorithms for collectives, as text for STARLING_PLAN_COLLECTIVES
    bool cached = false;      ///< whether mpiexec made the plan from the last run's traffic (STARLING_PLAN=auto)
    bool operator==(const Plan&) const = default;

    /// Returns whether the plan is for this job. A plan of size 0 fits no job.
    bool is_for(std::string_view command, uint32_t processes) const;
    control::PlanReply part_of(uint32_t rank) const;
    /// Adds the variables that the job's programs need. Settings that concern several processes at once are passed in the environment; each
    /// rank asks the root for the rest. The variables are put in front, so that the user's own settings take precedence.
    void put_into(std::vector<std::pair<std::string, std::string>>& environment) const;
};

/// Writes a plan as part of another message.
void write(Writer& writer, const Plan& plan);
/// Returns false if the bytes are not a plan; `out` is unspecified then.
bool read(Reader& reader, Plan& out);

}  // namespace starling::launch
