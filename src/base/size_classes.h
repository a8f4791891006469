// Size classes by which profiles and plans distinguish collective calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

namespace starling {

/// Upper limit of each class in bytes, inclusive; the last is unlimited.
inline constexpr uint64_t kSizeClasses[] = {64, 1024, 16 * 1024, 256 * 1024, ~uint64_t{0}};
inline constexpr const char* kSizeClassNames[] = {"<=64", "<=1K", "<=16K", "<=256K", ">256K"};
inline constexpr size_t kSizeClassCount = std::size(kSizeClasses);
static_assert(std::size(kSizeClassNames) == kSizeClassCount);

/// Returns the index of the class of `bytes` in kSizeClasses and kSizeClassNames.
inline uint8_t size_class_of(uint64_t bytes) {
    uint8_t index = 0;
    while (bytes > kSizeClasses[index]) ++index;
    return index;
}

/// Returns the index of the class with this name, or kSizeClassCount if there is none.
inline size_t size_class_named(std::string_view name) {
    size_t index = 0;
    while (index < kSizeClassCount && name != kSizeClassNames[index]) ++index;
    return index;
}

}  // namespace starling
