// FNV-1a: a hash with the same result on every host. It is not cryptographic: two texts with equal hashes are easy to construct.
#pragma once

#include <cstdint>
#include <string_view>

namespace starling {

inline constexpr uint64_t kEmptyHash = 0xcbf29ce484222325;

/// Extends `hash` by one more byte (or value used as a byte).
constexpr uint64_t hash_on(uint64_t hash, uint64_t byte) { return (hash ^ byte) * 0x100000001b3; }

constexpr uint64_t hash_on(uint64_t hash, std::string_view bytes) {
    for (const char c : bytes) hash = hash_on(hash, static_cast<unsigned char>(c));
    return hash;
}

}  // namespace starling
