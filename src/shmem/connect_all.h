// STARLING_CONNECT=all: connects all PEs at start, for comparison with connections on demand.
#pragma once

namespace starling::shmem {

/// Exchanges the memory descriptions of all PEs and requests a connection to each PE. Collective over all PEs; contains two barriers.
void connect_all();

}  // namespace starling::shmem
