// Phases that Starling detects (plan/phase_detector.h), for a plan or a profile of a program that does not mark its phases. They begin as
// if the program had marked them, and are named "found 1", "found 2" and so on. While no phase is detected, and while the traffic is unlike
// any before, the phase without a name is current.
//
// Not thread-safe: requires the library's lock (base/lock.h).
#pragma once

namespace starling::plan {

/// Starts the detection, which ends when the program marks a phase. Its only cost is to check, on each collective call, whether the call
/// recurs.
void find_phases();

}  // namespace starling::plan
