// Detects processes whose manager provides no way to find each other. They would run as n jobs of one rank each, instead of one job of n
// ranks.
#pragma once

namespace starling::bootstrap {

/// Checks, if no manager was found, whether the environment indicates that there are other ranks. Returns MPI_SUCCESS if not, else
/// MPI_ERR_OTHER with failure_text(): the evidence, and the remedy.
int refuse_loneliness();

}  // namespace starling::bootstrap
