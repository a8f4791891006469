// Records of phases: at the end of each occurrence of a phase, its counts are recorded and reported to the launcher
// (control/profile_report.h), which passes them on to mpiexec's file.
//
// Nothing waits for a report. One is sent at the end of a phase or during a wait, unless too many were sent recently or the launcher is
// slow. Records that cannot be sent are summed up by phase. So a process that is killed leaves a record of all ended phases or, if they end
// more often than every kBetweenReportsNs, of all but about the last such interval.
//
// Not thread-safe: within the library's lock (base/lock.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "job/job_segment.h"
#include "profile/traffic.h"

namespace starling::profile {

/// Starts recording, in MPI_Init: the reports go to the launcher of `own`, for rank `rank`. `own` must outlive the process's use of MPI.
/// Has no effect without counting(), or without a launcher.
void start_recording(job::JobSegment& own, uint32_t rank);

/// Records that a connection to a process was opened or closed.
void note_connection(const Traffic& peer, bool opened);

/// Sends a report, if there is anything to report and a report is due. Costs one load if nothing is recorded, otherwise a few loads; a
/// report takes about 50 µs.
void send_report();
/// Sends all records at once, because the process ends without MPI_Finalize.
void send_rest();

/// Sends everything counted so far to the launcher at once: the current phase ends and occurs again. It does so even if nothing is
/// recorded, since plans count occurrences.
void flush();

/// Ends the current phase and this process's record, with the last report. Recording starts again with the next phase.
void finish_recording();
/// Returns whether the launcher has received all records. Also true after kLongestFarewellNs, and if nothing is recorded.
bool handed_on();
inline constexpr uint64_t kLongestFarewellNs = 2'000'000'000;

/// Interval at which reports may be sent. Up to kReportsSaved reports that were not sent when allowed may be sent later. A rank with
/// shorter phases then pays about 0.5 %.
inline constexpr uint64_t kBetweenReportsNs = 10'000'000, kReportsSaved = 32;
/// Limits of the unanswered reports, in bytes and in number. At a limit no report is sent, because the launcher may be slow, or stopped.
inline constexpr size_t kMostUnderWay = 64 << 10, kMostCalls = 16;
/// Limits of the waiting records, in number and in bytes; above them, records are summed up by phase.
inline constexpr size_t kMostRecords = 64, kMostBytes = 64 << 10;

}  // namespace starling::profile
