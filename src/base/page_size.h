// Sizes of memory pages on x86-64.
#pragma once

#include <cstdint>

namespace starling {

constexpr uint64_t kPage = 4096, kHugePage = 2u << 20;

}  // namespace starling
