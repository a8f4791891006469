// Phases that Starling finds itself (plan/phase_detector.h), where somebody wants to know of phases and the program marks none: they are begun as if
// it had, with names "found 1", "found 2", … What goes on before anything is found, or is like nothing before, is the phase
// without a name.
//
// Not thread-safe: within the library's lock (base/lock.h).
#pragma once

namespace starling::plan {

/// Begins to look, until the program marks a phase. Its collective calls cost a look at which of them recur; nothing else does.
void find_phases();

}  // namespace starling::plan
