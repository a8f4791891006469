// A rank's part of the plan that its launcher has read (docs/plan.md), in the form in which the launcher sends it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/wire.h"

namespace starling::control {

struct PlannedPeer {
    uint32_t rank = 0;      ///< rank of the peer, in the job of the rank that asked
    uint32_t priority = 0;  ///< priority of a connection to the peer, at least 1
    bool operator==(const PlannedPeer&) const = default;
};

/// The plan's peers for the occurrences from, from + 1, … to of a phase.
struct PlannedPhase {
    std::string name;
    uint64_t from = 1, to = 1;
    std::vector<PlannedPeer> peers;  ///< the peers, by descending priority
    bool operator==(const PlannedPhase&) const = default;
};
inline constexpr uint64_t kForever = UINT64_MAX;  ///< value of PlannedPhase::to: all further occurrences

/// Limits that a plan sets, unless the user has set them.
struct PlanLimits {
    static constexpr uint64_t kNone = UINT64_MAX;
    uint64_t max_direct = kNone, max_connections = kNone, eager_limit = kNone;
    bool operator==(const PlanLimits&) const = default;
};

/// The reply to MessageKind::plan. Without phases there is no plan for this job.
struct PlanReply {
    PlanLimits limits;
    std::vector<PlannedPhase> phases;  ///< the phases, in the plan's order
    bool operator==(const PlanReply&) const = default;
};

void write(Writer& writer, const PlanLimits& limits);
void read(Reader& reader, PlanLimits& out);
void write(Writer& writer, const std::vector<PlannedPeer>& peers);
void read(Reader& reader, std::vector<PlannedPeer>& out);

std::string encode(const PlanReply& message);
/// Returns false if `payload` is not exactly one reply or contains invalid values; `out` is then unspecified.
bool decode(std::string_view payload, PlanReply& out);

}  // namespace starling::control
