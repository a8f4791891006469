// Who am I: a process of Starling's launcher, of another manager (PMIx, PMI-2, PMI-1), or a program of its
// own.
#pragma once

#include <cstdint>
#include <string_view>

#include "job/job_segment.h"

namespace starling::bootstrap {

/// Finds out which job this process belongs to and maps this host's segment of it; a program of its own
/// gets one. STARLING_PMI decides which managers are believed. Called once, before threads start.
/// MPI_SUCCESS, or an error class with failure_text().
int join_job(uint32_t& rank, job::JobSegment& segment);

/// Whether another manager than Starling's has started this process.
bool is_managed();

/// Under another manager, tells the job's other hosts where this process listens, which is in its word of
/// the address table; else, or if there are no others, does nothing. Waits for no one. Once, by every rank,
/// when its job's `segment` is where it stays until the process ends.
int publish_port(job::JobSegment& segment);

/// If is_managed(): has the address of `rank` of this process's own job, on another host, looked up and
/// written into the segment's tables. Called again and again until it returns true; this process's doorbell
/// is rung when something has come. A rank that the manager says will never be known is marked as failed.
bool locate_through_manager(job::JobSegment& segment, uint32_t rank);

/// This process needs its manager no more.
void leave_manager();

/// Asks the manager, if there is one, to end the job; the caller then exits with `code`.
void abort_through_manager(int code);

}  // namespace starling::bootstrap
