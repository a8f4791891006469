// The rule by which data of a message above STARLING_EAGER_LIMIT moves within a host, in one place: a table by the cache distance of the
// two processes, and the conditions around it. Times are those of docs/measurements/fragments-2026-11-26.md. Between 2 and 3 the rule only
// gives the first choice: timed_copy.h times both with the program's messages and then prefers the faster.
//
//   1. Memory of MPI_Alloc_mem or a window, which the receiver can map: one copy by loads, by the receiver, and from STARLING_SPLIT_LIMIT
//      on by both. Fragments of the same memory take 2 to 3 times as long. The sender sends none ahead.
//   2. Otherwise fragments, up to fragments_up_to(), if the sender waits in the library and has a core: two copies that overlap.
//   3. Otherwise the kernel's copy, by both processes from STARLING_SPLIT_LIMIT on.
//
// both_sided.h and kernel_copy.h carry out 1 and 3, and pieces.h carries out 2. The sender measures the distance (CopyPath in base/copy.h)
// again and again, because processes move between cores.
#pragma once

#include <cstdint>

#include "base/copy.h"

namespace starling::message {

/// The choice for two processes at one cache distance.
struct CopyChoice {
    CopyPath::CacheDistance distance;
    const char* name;  ///< of the distance, for users
    /// Fragments are used up to STARLING_STREAM_LIMIT divided by this; 0: for messages of any length.
    uint32_t limit_divisor;
    /// Length of all fragments but the last, bytes; of messages from `long_from` on, `long_fragment`.
    uint32_t fragment, long_fragment;
    uint64_t long_from;
    const char* why;
};

// The receiver reads one fragment while the sender writes the next. If both are equally fast, a message takes the time of one copy, plus
// that of one fragment, plus a fixed cost per fragment.
inline constexpr CopyChoice kCopyChoices[] = {
    {CopyPath::CacheDistance::close, "close", 0, 16 * 1024, 32 * 1024, 512 * 1024,
     "the cores share their caches: two copies are faster than the kernel's one at any length"},
    {CopyPath::CacheDistance::near, "near", 1, 16 * 1024, 32 * 1024, 512 * 1024,
     "the cores share the last-level cache: a fragment costs as much as 2 KB of data, so fragments are short"},
    {CopyPath::CacheDistance::far, "far", 1, 16 * 1024, 32 * 1024, 128 * 1024,
     "the cores share no cache: a fragment costs as much as 5 KB of data, so fragments are longer; the kernel's copy takes 1.6 "
     "times as long"},
};

inline const CopyChoice& copy_choice(CopyPath::CacheDistance distance) { return kCopyChoices[static_cast<int>(distance)]; }

/// Returns the length of the longest message that moves in fragments at this distance, if STARLING_STREAM_LIMIT is `stream_limit`.
inline uint64_t fragments_up_to(const CopyChoice& choice, uint64_t stream_limit) {
    if (stream_limit == 0) return 0;
    return choice.limit_divisor ? stream_limit / choice.limit_divisor : ~uint64_t{0};
}

/// Returns the length of the next fragment of a message of `bytes`, of which `rest` (not 0) remain.
inline uint32_t fragment_bytes(const CopyChoice& choice, uint64_t bytes, uint64_t rest) {
    const uint32_t most = bytes < choice.long_from ? choice.fragment : choice.long_fragment;
    return rest < most ? static_cast<uint32_t>(rest) : most;
}

/// Bytes that a sender sends before the receiver's CTS, if it expects one: writing them takes longer than a CTS takes to arrive.
inline constexpr uint64_t kAheadBytes = 64 * 1024;

}  // namespace starling::message
