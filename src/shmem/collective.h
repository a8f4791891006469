// Collectives as other parts of the room use them. All give 0 or an MPI error class.
#pragma once

#include "shmem/team.h"

namespace starling::shmem {

int barrier(Team& team);
/// Whether all members say yes.
bool all_agree(Team& team, bool mine);
/// With STARLING_CHECK: ends the job if not all members give the same; collective over the team then.
void check_alike(Team& team, const char* what, int64_t value);
/// The same, over the world.
void check_alike_everywhere(const char* what, uint64_t value);

}  // namespace starling::shmem
