// Chooses the algorithm for a call on a view and reports the choice to the profile.
#pragma once

#include "collective/algorithm_override.h"
#include "collective/core/view.h"
#include "collective/select.h"
#include "profile/collectives.h"

namespace starling::collective {

inline const Algorithm& choose(const View& view, const CallParameters& call) {
    if (view.steering) [[unlikely]]
        return view.steering->choose(call);
    return select(call);
}

/// Reports to the profile which algorithm the call uses.
[[gnu::noinline, gnu::cold]] inline void report_choice(const AlgorithmOverride* steering, const Algorithm& algorithm,
                                                       uint64_t bytes) {
    profile::note_choice(algorithm.name.data(), bytes, steering && steering->tried());
}
inline void note_choice(const View& view, const Algorithm& algorithm, const CallParameters& call) {
    if (profile::watching) [[unlikely]]
        report_choice(view.steering, algorithm, call.bytes);
}

}  // namespace starling::collective
