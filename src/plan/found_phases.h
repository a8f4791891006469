// Phases that Starling detects (plan/phase_detector.h), for a plan or a profile of a program that marks none. They begin as if the program
// had marked them, and are named "found 1", "found 2" and so on. While nothing is detected, and while the traffic is unlike any before, the
// phase without a name is current.
//
// Not thread-safe: within the library's lock (base/lock.h).
#pragma once

namespace starling::plan {

/// Starts the detection, which ends with the program's first mark. It costs a check on each collective call whether the call recurs, and
/// nothing else.
void find_phases();

}  // namespace starling::plan
