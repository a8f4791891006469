// The headline of a profile: the cause of most of the lost time, and what to do about it. One rule per cause estimates how much time the
// cause explains, and further rules describe waits that no cause explains. The rule with the longest time determines the headline.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ranks.h"
#include "run.h"

namespace starling::analysis {

enum class Finding : uint8_t {
    shared_cores,      ///< more ranks on a host than cores, which they keep busy
    other_programs,    ///< ranks were ready to run, but other programs had their cores
    late_ranks,        ///< a few ranks compute longer than the others, which wait for them
    uneven_work,       ///< many ranks compute longer than the others
    late_senders,      ///< receives wait although all ranks compute equally long
    late_receivers,    ///< sends wait for their receivers
    many_collectives,  ///< collective calls take the time although no rank is late
    computation,       ///< little time is lost: the fallback
};

/// What a rule has found.
struct Diagnosis {
    Finding finding;
    double seconds;    ///< time that the cause explains, of all processes together, s
    std::string text;  ///< one or two sentences: what was found, and what to do
};

/// Returns what each rule has found, the one with the longest time first. The fallback is always the last.
std::vector<Diagnosis> diagnose(const Run& run, const RankTable& table);

/// Returns the first diagnosis.
Diagnosis headline(const Run& run, const RankTable& table);

}  // namespace starling::analysis
