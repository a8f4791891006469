// Which release this is, and which others it works with (docs/versions.md). The wire version counts what programs of
// different releases say to each other: they work together if its first numbers are equal. Its second grows with what was added,
// which older ones do without.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace starling {

struct Version {
    char mark[16];          ///< where it is in a file
    uint16_t major, minor;  ///< of the wire
    char release[28];
};
/// This build's. Not a constant to the compiler: what is linked decides.
extern const Version kThisVersion;

/// Both numbers in one: how messages and segments carry it.
inline uint32_t wire_version() { return static_cast<uint32_t>(kThisVersion.major) << 16 | kThisVersion.minor; }

/// Whether who speaks that wire version and this build understand each other.
inline bool understands(uint32_t wire) { return wire >> 16 == kThisVersion.major; }

/// "0.1.0 (wire 1.0)".
std::string version_text();
std::string version_text(std::string_view release, uint32_t wire);

/// Whether two such texts are of releases that understand each other.
bool understand_each_other(std::string_view one, std::string_view other);

/// What is said where they don't, with both: "they understand each other only if ...".
extern const char kVersionRemedy[];

}  // namespace starling
