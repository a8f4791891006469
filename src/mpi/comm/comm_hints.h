// Info keys that communicators support (MPI 5.0 section 7.4.4).
#pragma once

#include "comm/comm.h"
#include "comm/info.h"

namespace starling::mpi {

/// Copies the supported hints from `info` to `hints`; others are ignored.
void read_hints(const comm::Info& info, comm::Hints& hints);

}  // namespace starling::mpi
