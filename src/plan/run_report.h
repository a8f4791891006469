// The traffic of the whole run, for STARLING_PLAN=auto (docs/plan.md): the messages and bytes that this process has sent to each rank of
// its job. Sequence numbers count the messages in any case, so the only cost is one addition per message and one report in MPI_Finalize.
//
// Not thread-safe: requires the library's lock (base/lock.h).
#pragma once

#include <cstddef>
#include <cstdint>

namespace starling::plan {

/// Starts the report of this run to the launcher, once per process and only with STARLING_PLAN=auto. A profile has the same counts and
/// more, so with a profile there is no report.
void report_run();

/// Returns whether the launcher has the report. Also true if there is none, the launcher refuses it, or kLongestReportNs have passed.
bool run_reported();

inline constexpr size_t kMostReported = 64;  ///< maximum number of ranks in the report: those to which most bytes were sent
inline constexpr uint64_t kLongestReportNs = 2'000'000'000;

}  // namespace starling::plan
