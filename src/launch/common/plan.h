// A plan for all ranks of a job, as the root of the universe keeps it: mpiexec reads it (launch/client/plan_file.h), a rank asks for its part.
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
    struct Phase {
        std::string name;
        uint64_t from = 1, to = 1;
        std::map<uint32_t, std::vector<control::PlannedPeer>> peers;  ///< by rank; who has none may be left out
        bool operator==(const Phase&) const = default;
    };
    std::string application;  ///< base name of the command
    uint32_t size = 0;        ///< processes
    control::PlanLimits limits;
    std::vector<Phase> phases;
    std::string collectives;  ///< as in STARLING_PLAN_COLLECTIVES
    bool operator==(const Plan&) const = default;

    /// Whether it is one for this job; there is none if `size` is 0.
    bool is_for(std::string_view command, uint32_t processes) const;
    control::PlanReply part_of(uint32_t rank) const;
    /// What a program has to find in its environment. What concerns several processes at once they know from their start; all else they
    /// ask for. In front of what is there, so that what the user sets wins.
    void put_into(std::vector<std::pair<std::string, std::string>>& environment) const;
};

/// A plan within another message.
void write(Writer& writer, const Plan& plan);
/// False if it is none; `out` is then unspecified.
bool read(Reader& reader, Plan& out);

}  // namespace starling::launch
