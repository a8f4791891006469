// Phases: intervals of the program with similar traffic. A phase begins with a mark of the program, or with one that Starling has found. A
// process is always in a phase; until the first mark this is phase 0, which has no name.
//
// Not thread-safe: within the library's lock (base/lock.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace starling::profile {

/// A phase of this process: 0, 1, … in the order of first occurrence. Other processes may number phases differently; only the names are
/// common.
using PhaseId = uint32_t;

/// The origin of a phase's mark: none (phase 0), MPIX_Phase_begin, MPI_Pcontrol, or the phase detector.
enum class PhaseMark : uint8_t { start, program, pcontrol, found };

struct Phase {
    std::string name;
    PhaseMark mark;            ///< origin of the first occurrence's mark
    uint64_t occurrences = 0;  ///< number of times that the phase has begun, including the current one
    uint64_t began = 0;        ///< start of the last occurrence, ns
};

/// Ends the current phase and begins the one with this name, which may be new. With the name of the current phase, that phase ends and
/// occurs again. Listeners are called before the ended phase's traffic is cleared.
PhaseId begin_phase(std::string_view name, PhaseMark mark = PhaseMark::program);

/// Sets everything that is counted per phase to 0.
void clear_counts();

PhaseId current_phase();
const Phase& phase(PhaseId id);
/// Returns the number of phases.
uint32_t phases();

/// Called when a phase begins. `ended` has ended and its traffic is still there; `begun` begins (the two may be equal). Listeners are
/// called in the order of registration, cannot be removed, and there are at most kListeners.
using PhaseListener = void (*)(PhaseId ended, PhaseId begun);
inline constexpr uint32_t kListeners = 4;
void listen_to_phases(PhaseListener listener);

}  // namespace starling::profile
