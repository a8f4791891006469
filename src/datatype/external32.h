// The external32 representation: big-endian, of fixed sizes, the same on every machine (MPI 5.0
// section 14.5.2).
#pragma once

#include <cstdint>

#include "datatype/datatype.h"

namespace starling::datatype {

/// Bytes of one element in external32 form, without alignment or padding. -1: does not fit in 64 bits.
int64_t external_size(const Datatype& type);
/// The same of what is being made, whose parts know theirs.
int64_t external_size(const Recipe& recipe);

/// Converts `count` elements to external32 form at `out`; gives the byte behind the last one written.
std::byte* pack_external(const Datatype& type, int64_t count, const void* buffer, std::byte* out);
/// The reverse.
const std::byte* unpack_external(const Datatype& type, int64_t count, void* buffer, const std::byte* in);

}  // namespace starling::datatype
