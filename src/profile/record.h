// What becomes of the counts: at the end of each occurrence of a phase they are written down, and handed to the launcher
// (control/profile_report.h), on their way to mpiexec's file. Nothing waits for that: a report goes at the end of a phase, or while
// the process waits for something else, as long as there were not too many lately and the launcher answers; what can't go is
// summed up by phase. So a process that is killed leaves all phases that have ended, or, if they end more often than every
// kBetweenReportsNs, all but those of about the last such time.
//
// Not thread-safe: within the library's lock (base/lock.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "job/job_segment.h"
#include "profile/traffic.h"

namespace starling::profile {

/// Begins, in MPI_Init: what is counted goes to the launcher of `own`, as `rank`'s. `own` must outlive the process's use of MPI.
/// Nothing without counting(), or where there is no launcher.
void start_recording(job::JobSegment& own, uint32_t rank);

/// A connection to that process was opened or closed.
void note_connection(const Traffic& peer, bool opened);

/// Hands on what there is, if it is time. Costs a load where nothing is recorded, else a few; a report some 50 µs.
void hand_on();
/// The process ends without MPI_Finalize: what is written down goes at once.
void hand_on_the_rest();

/// What has been counted so far goes to the launcher at once: the phase that is going on ends, and occurs again. So it does where nothing
/// is recorded, since plans count occurrences.
void flush();

/// The phase that is going on ends, and with it this process's record: the last report. Begins again with the next phase.
void finish_recording();
/// Whether everything is with the launcher; also if that takes too long (kLongestFarewell), or it writes nothing down.
bool handed_on();
inline constexpr uint64_t kLongestFarewellNs = 2'000'000'000;

/// A report may go every so many ns, and of those that did not so many later: a rank whose phases are shorter pays some 0.5 %.
inline constexpr uint64_t kBetweenReportsNs = 10'000'000, kReportsSaved = 32;
/// Reports go as long as less is on its way, bytes and reports: the launcher may be slow, or stopped.
inline constexpr size_t kMostUnderWay = 64 << 10, kMostCalls = 16;
/// Records that wait are summed up by phase when there are more, or more bytes of them.
inline constexpr size_t kMostRecords = 64, kMostBytes = 64 << 10;

}  // namespace starling::profile
