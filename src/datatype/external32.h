// The external32 representation: big-endian, with fixed sizes, the same on every machine (MPI 5.0 section 14.5.2).
#pragma once

#include <cstdint>

#include "datatype/datatype.h"

namespace starling::datatype {

/// Returns the bytes of one element in external32 form, without alignment or padding; -1 if they do not fit in 64 bits.
int64_t external_size(const Datatype& type);
/// Returns the external32 size of a type under construction, from the sizes of its parts.
int64_t external_size(const Recipe& recipe);

/// Converts `count` elements to external32 form at `out`; returns the end of the written bytes.
std::byte* pack_external(const Datatype& type, int64_t count, const void* buffer, std::byte* out);
/// Converts `count` elements from external32 form; returns the end of the read bytes.
const std::byte* unpack_external(const Datatype& type, int64_t count, void* buffer, const std::byte* in);

/// Converts as many basic elements of one element as lie in `bytes` bytes of external32 form; returns the bytes of data in memory.
int64_t unpack_external_part(const Datatype& type, void* buffer, const std::byte* in, int64_t bytes);

}  // namespace starling::datatype
