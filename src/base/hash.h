// FNV-1a: a hash that is the same everywhere. It keeps nobody from making two texts that collide.
#pragma once

#include <cstdint>
#include <string_view>

namespace starling {

inline constexpr uint64_t kEmptyHash = 0xcbf29ce484222325;

/// The hash of what `hash` was of, and one more byte (or what stands for one).
constexpr uint64_t hash_on(uint64_t hash, uint64_t byte) { return (hash ^ byte) * 0x100000001b3; }

constexpr uint64_t hash_on(uint64_t hash, std::string_view bytes) {
    for (const char c : bytes) hash = hash_on(hash, static_cast<unsigned char>(c));
    return hash;
}

}  // namespace starling
