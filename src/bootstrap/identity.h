// Determines the job and rank of this process: started by Starling's launcher, by another manager (PMIx, PMI-2, PMI-1), or alone as a
// singleton.
#pragma once

#include <cstdint>
#include <string_view>

#include "job/job_segment.h"

namespace starling::bootstrap {

/// Finds the job of this process and maps this host's segment of it; for a singleton, creates one. STARLING_PMI selects the managers that
/// are considered. Called once, before threads start. Returns MPI_SUCCESS, or an error class with failure_text().
int join_job(uint32_t& rank, job::JobSegment& segment);

/// Returns whether a manager other than Starling's has started this process.
bool is_managed();

/// Under another manager, publishes to the job's other hosts the port of this process, which is in its word of the address table.
/// Otherwise, or if the job has no other hosts, does nothing. Does not wait. Called once by every rank; `segment` must stay at its address
/// until the process ends.
int publish_port(job::JobSegment& segment);

/// Looks up the address of `rank`, a rank of this process's own job on another host, and writes it into the segment's tables. Requires
/// is_managed(). To be called repeatedly until it returns true; this process's doorbell is rung when an answer has arrived. If the manager
/// says that the rank will never be known, it is marked as failed.
bool locate_through_manager(job::JobSegment& segment, uint32_t rank);

/// Disconnects from the manager: this process needs it no longer.
void leave_manager();

/// Asks the manager, if there is one, to end the job; the caller then exits with `code`.
void abort_through_manager(int code);

}  // namespace starling::bootstrap
