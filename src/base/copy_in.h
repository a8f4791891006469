// Copies out of shared memory.
#pragma once

#include <cstddef>

namespace starling {

/// memcpy of data that another core has written just before, into memory of this process. Up to some 16 KB, loads of whole cache lines
/// fetch them sooner than memcpy's `rep movsb` does, which glibc uses from 2 KB on. Otherwise like memcpy.
void copy_in(void* to, const void* from, size_t bytes);

/// Minimum bytes for copy_in() to differ from memcpy: glibc's has loads of whole lines below.
inline constexpr size_t kCopyInMatters = 2112;

}  // namespace starling
