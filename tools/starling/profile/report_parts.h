// Parts of a report: each function adds members to the report (report.h).
#pragma once

#include "report.h"

namespace starling::analysis {

/// Adds "process_seconds" and "waits", the times of all processes together.
void add_times(const Run& run, Data& out);
/// Adds "waiting" and "collectives", the call sites with the longest times first.
void add_places(const Run& run, const ReportWish& wish, Data& out);
/// Adds "accessed_files" and "file_calls", the files and their call sites with the longest times first.
void add_files(const Run& run, const ReportWish& wish, Data& out);
/// Adds "phases", the longest first.
void add_phases(const Run& run, const ReportWish& wish, Data& out);
/// Adds "timeline": the phases of each rank, in the order of time.
void add_timeline(const Run& run, Data& out);
/// Adds "sizes", the histogram of messages by size.
void add_sizes(const Run& run, Data& out);
/// Adds "traffic", the sums by path, and "pairs" and "between_hosts".
void add_traffic(const Run& run, const ReportWish& wish, Data& out);
/// Adds "connections": the shares of messages on connections, by the number of connections per process.
void add_connections(const Run& run, Data& out);

/// Adds a list and the number of its entries, of which at most wish.rows are kept.
void add_rows(Data& out, const char* name, Data rows, const ReportWish& wish);
Data waits_of(const Waits& waits);
/// Returns an object with the process's job, rank and host.
Data process_as_data(const Run& run, uint32_t process);

}  // namespace starling::analysis
