// STARLING_CONNECT=all: what starting on demand is measured against.
#pragma once

namespace starling::shmem {

/// Between two barriers everybody tells everybody else of its memory, and asks for a connection to each.
void meet_all();

}  // namespace starling::shmem
