// A rank's part of the plan that its launcher has (docs/plan.md), as the rank gets it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/wire.h"

namespace starling::control {

struct PlannedPeer {
    uint32_t rank = 0;      ///< of the own job
    uint32_t priority = 0;  ///< at least 1
    bool operator==(const PlannedPeer&) const = default;
};

/// What a plan says of some occurrences of a phase: from, from + 1, … to.
struct PlannedPhase {
    std::string name;
    uint64_t from = 1, to = 1;
    std::vector<PlannedPeer> peers;  ///< by falling priority
    bool operator==(const PlannedPhase&) const = default;
};
inline constexpr uint64_t kForever = UINT64_MAX;  ///< as PlannedPhase::to

/// Limits that a plan names, for those that the user has not set.
struct PlanLimits {
    static constexpr uint64_t kNone = UINT64_MAX;
    uint64_t max_direct = kNone, max_connections = kNone, eager_limit = kNone;
    bool operator==(const PlanLimits&) const = default;
};

/// No phases: there is no plan for this job.
struct PlanReply {
    PlanLimits limits;
    std::vector<PlannedPhase> phases;  ///< in the plan's order
    bool operator==(const PlanReply&) const = default;
};

void write(Writer& writer, const PlanLimits& limits);
void read(Reader& reader, PlanLimits& out);
void write(Writer& writer, const std::vector<PlannedPeer>& peers);
void read(Reader& reader, std::vector<PlannedPeer>& out);

std::string encode(const PlanReply& message);
/// False if `payload` is not exactly one reply, or says what makes no sense; `out` is then unspecified.
bool decode(std::string_view payload, PlanReply& out);

}  // namespace starling::control
