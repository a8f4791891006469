// Memory for coroutine frames: free lists by size class, so that a collective call costs no malloc once
// warm.
#pragma once

#include <cstddef>

namespace starling::collective {

/// Returns `bytes` of memory for a frame, aligned for any type; throws std::bad_alloc. Needs the library's lock.
void* allocate_frame(std::size_t bytes);

/// Frees the result of allocate_frame(bytes). Needs the library's lock.
void release_frame(void* frame, std::size_t bytes) noexcept;

/// Returns the number of frames in use; tests look for leaks with it.
std::size_t live_frames();

}  // namespace starling::collective
