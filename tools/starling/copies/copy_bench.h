// Measures copies of messages between two processes on two cores: with ordinary stores, with stores that bypass the caches, and by the
// kernel. It needs no job, so it shows what the machine can do, and not what Starling adds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/copy.h"
#include "core_pairs.h"

namespace starling {

/// The sizes of the messages that are measured.
inline constexpr uint64_t kLeastCopy = 16 * 1024, kMostCopy = 1024 * 1024;

/// Times of one message, from the reader's request to its last byte, in microseconds; negative: not possible here.
struct CopyTimes {
    uint64_t bytes = 0;
    double ordinary = -1;     ///< two copies through shared memory, which overlap
    double past_caches = -1;  ///< two copies; the writer's stores bypass its caches
    double kernel = -1;       ///< one copy by process_vm_readv()
};

struct CopyReport {
    CorePair cores;
    double line_ns = 0;  ///< half a round trip of a cache line
    /// The distance that Starling's own copies measure between these cores. The rule uses it.
    CopyPath::CacheDistance distance = CopyPath::CacheDistance::near;
    std::vector<CopyTimes> times;
    std::string problem;  ///< a sentence, if the measurement failed
};

/// Measures between two cores, for about half a second.
CopyReport measure_copies(const CorePair& cores);

}  // namespace starling
