// The choice of an algorithm for a call on a view, and who hears of it.
#pragma once

#include "collective/algorithm_override.h"
#include "collective/core/view.h"
#include "collective/select.h"
#include "profile/collectives.h"

namespace starling::collective {

inline const Algorithm& choose(const View& view, const Call& call) {
    if (view.steering) [[unlikely]]
        return view.steering->choose(call);
    return select(call);
}

/// It is what the call does; somebody wants to know.
[[gnu::noinline, gnu::cold]] inline void tell_choice(const AlgorithmOverride* steering, const Algorithm& algorithm,
                                                     uint64_t bytes) {
    profile::note_choice(algorithm.name.data(), bytes, steering && steering->tried());
}
inline void note_choice(const View& view, const Algorithm& algorithm, const Call& call) {
    if (profile::watching) [[unlikely]]
        tell_choice(view.steering, algorithm, call.bytes);
}

}  // namespace starling::collective
