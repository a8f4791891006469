// Collectives for other files of src/shmem. Functions that return int return 0 or an MPI error class.
#pragma once

#include "shmem/team.h"

namespace starling::shmem {

int barrier(Team& team);
/// Returns whether `mine` is true on all members; collective.
bool all_agree(Team& team, bool mine);
/// Ends the job if not all members pass the same value. Only with STARLING_CHECK, where the call is collective over the team.
void check_alike(Team& team, const char* what, int64_t value);
/// Ends the job if not all PEs of the world pass the same value, under the conditions of check_alike().
void check_alike_everywhere(const char* what, uint64_t value);

}  // namespace starling::shmem
