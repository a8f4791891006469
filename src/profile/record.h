// Records of phases: at the end of each occurrence of a phase, its counts are recorded and reported to the launcher
// (control/profile_report.h), which passes them on to mpiexec's file.
//
// The process never waits for a report to be sent. A report is sent at the end of a phase or during a wait, unless too many were sent
// recently or the launcher is slow. Records that cannot be sent are summed up by phase. So a process that is killed leaves a record of all
// ended phases. If phases end more often than every kBetweenReportsNs, those of about the last such interval are lost.
//
// Not thread-safe: requires the library's lock (base/lock.h).
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

/// Sends everything counted so far to the launcher at once; for this, the current phase ends and occurs again. The phase is restarted even
/// if nothing is recorded, since plans count occurrences.
void flush();

/// Ends the current phase and this process's record, with the last report. Recording starts again with the next phase.
void finish_recording();
/// Returns whether the launcher has received all records. Also true after kLongestFarewellNs, and if nothing is recorded.
bool handed_on();
inline constexpr uint64_t kLongestFarewellNs = 2'000'000'000;

/// Interval at which reports may be sent. Up to kReportsSaved unused intervals may be made up for later. Reports then cost a rank with
/// shorter phases about 0.5 % of its time.
inline constexpr uint64_t kBetweenReportsNs = 10'000'000, kReportsSaved = 32;
/// Limits of the unanswered reports, in bytes and in number. At a limit no further report is sent, because the launcher may be slow or
/// stopped.
inline constexpr size_t kMostUnderWay = 64 << 10, kMostCalls = 16;
/// Limits of the unreported records, in number and in bytes; above them, records are summed up by phase.
inline constexpr size_t kMostRecords = 64, kMostBytes = 64 << 10;

}  // namespace starling::profile
