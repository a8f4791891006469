// The process's use of its cores since MPI_Init, for the profile: a rank that waits for a core looks like one that computes or waits.
#pragma once

#include "control/profile_report.h"

namespace starling::profile {

/// Returns the times since the process began, or the thread began, with the process's processors. Members that the system does not report
/// are 0.
control::ProfileReport::CoreRecord read_core_use();

/// Returns the difference of two readings, with the processors of the later one.
control::ProfileReport::CoreRecord since(const control::ProfileReport::CoreRecord& began,
                                         control::ProfileReport::CoreRecord now);

}  // namespace starling::profile
