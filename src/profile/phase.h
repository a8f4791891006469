// Phases: intervals of the program with similar traffic. A phase begins where the program marks it or where Starling detects it. A process
// is always in a phase; until the first mark this is phase 0, which has no name.
//
// Not thread-safe: requires the library's lock (base/lock.h).
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

/// Ends the current phase and begins the phase with this name, which may be new or the current one. Listeners are called before the ended
/// phase's traffic is cleared.
PhaseId begin_phase(std::string_view name, PhaseMark mark = PhaseMark::program);

/// Sets everything that is counted per phase to 0.
void clear_counts();

PhaseId current_phase();
const Phase& phase(PhaseId id);
/// Returns the number of phases that have occurred.
uint32_t phases();

/// Called when a phase begins. The traffic of the phase `ended` can still be read; `begun` is the phase that begins, and may be the same.
/// Listeners are called in the order of registration, cannot be removed, and there are at most kListeners.
using PhaseListener = void (*)(PhaseId ended, PhaseId begun);
inline constexpr uint32_t kListeners = 4;
void listen_to_phases(PhaseListener listener);

}  // namespace starling::profile
