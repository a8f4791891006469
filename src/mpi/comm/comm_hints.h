// Info keys that communicators know (MPI 5.0 section 7.4.4).
#pragma once

#include "comm/comm.h"
#include "comm/info.h"

namespace starling::mpi {

/// Takes over what `info` says about the known hints; others are ignored.
void read_hints(const comm::Info& info, comm::Hints& hints);

}  // namespace starling::mpi
