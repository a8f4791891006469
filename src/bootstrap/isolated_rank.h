// One process of several whose manager offers no way to the others: n programs of one rank each, where one job of n was meant.
#pragma once

namespace starling::bootstrap {

/// For a process that no manager was found for. MPI_SUCCESS if nothing in the environment says that there are others of its
/// kind, else MPI_ERR_OTHER with failure_text(): what was found, and what cures it.
int refuse_loneliness();

}  // namespace starling::bootstrap
