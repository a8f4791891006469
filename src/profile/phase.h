// Phases: stretches of the program in which its traffic looks alike, begun by a mark of the program's or by one that Starling
// has found. A process is always in one: in phase 0, which has no name, until the first mark.
//
// Not thread-safe: within the library's lock (base/lock.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace starling::profile {

/// Phases of this process in the order in which they were begun first: 0, 1, … Other processes may number them otherwise;
/// what they have in common is the name.
using PhaseId = uint32_t;

/// Who says where it begins: nobody (phase 0), the program by MPIX_Phase_begin or by MPI_Pcontrol, or Starling, which has found it.
enum class PhaseMark : uint8_t { start, program, pcontrol, found };

struct Phase {
    std::string name;
    PhaseMark mark;            ///< of its first occurrence
    uint64_t occurrences = 0;  ///< begun so often, this one included
    uint64_t began = 0;        ///< ns, the last one
};

/// Ends the phase that is going on and begins one, known by its name or new. The same name as now: it ends, and occurs again.
/// Listeners hear of it before the traffic of the old one is cleared.
PhaseId begin_phase(std::string_view name, PhaseMark mark = PhaseMark::program);

/// Everything that is counted begins at 0.
void clear_counts();

PhaseId current_phase();
const Phase& phase(PhaseId id);
/// How many there are.
uint32_t phases();

/// Who wants to know of every begin: `ended` is over, with its traffic still there, and `begun` begins (they may be the same).
/// In the order in which they came. A few at most (kListeners); for good.
using PhaseListener = void (*)(PhaseId ended, PhaseId begun);
inline constexpr uint32_t kListeners = 4;
void listen_to_phases(PhaseListener listener);

}  // namespace starling::profile
