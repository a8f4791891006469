// The release of this build, and the releases that it is compatible with (docs/versions.md). The wire version numbers the protocol between
// programs of different releases: they work together if their major numbers are equal. The minor number grows with additions, which older
// releases do without.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace starling {

struct Version {
    char mark[16];          ///< text by which a search finds this struct in a binary
    uint16_t major, minor;  ///< numbers of the wire version
    char release[28];
};
/// The version of this build. Not a constant to the compiler: the object file that is linked decides.
extern const Version kThisVersion;

/// Wire version 1.0, in the form of wire_version(). Its programs send no version where 1.1 has added one.
inline constexpr uint32_t kFirstWire = 1u << 16;
/// Returns the wire version's major and minor number in one word, as messages and segments carry it.
inline uint32_t wire_version() { return static_cast<uint32_t>(kThisVersion.major) << 16 | kThisVersion.minor; }

/// Returns whether this build can communicate with a program of wire version `wire`.
inline bool understands(uint32_t wire) { return wire >> 16 == kThisVersion.major; }

/// Returns for example "0.1.0 (wire 2.1)".
std::string version_text();
std::string version_text(std::string_view release, uint32_t wire);

/// Returns whether two texts from version_text() are of releases that can communicate with each other.
bool understand_each_other(std::string_view one, std::string_view other);

/// The end of the error text for two releases that cannot communicate: which releases work together.
extern const char kVersionRemedy[];

}  // namespace starling
