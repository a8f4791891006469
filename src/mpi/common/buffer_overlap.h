// Detects memory that a call both sends and receives, which is an error unless the argument is MPI_IN_PLACE (MPI 5.0 sections 2.3 and 6.1).
// Types may interleave in one buffer and displacements may point anywhere, so only bytes that are certainly shared count. A legal call is
// thus never refused, and members that make the same mistake get the same result.
#pragma once

#include <cstdint>

#include "collective/core/blocks.h"

namespace starling::mpi {

struct TypedBuffer {
    const void* buffer;
    int64_t count;
    const datatype::Datatype& type;
};

/// Returns whether `a` and `b` certainly share a byte: their byte ranges overlap, or they are the same elements.
inline bool overlap(const TypedBuffer& a, const TypedBuffer& b) {
    const uint64_t of_a = datatype::packed_size(a.type, a.count), of_b = datatype::packed_size(b.type, b.count);
    if (of_a == 0 || of_b == 0) return false;
    if (!datatype::is_block(a.type, a.count) || !datatype::is_block(b.type, b.count))
        return a.buffer == b.buffer && &a.type == &b.type;
    const auto from_a = reinterpret_cast<uintptr_t>(datatype::block_address(a.type, a.buffer)),
               from_b = reinterpret_cast<uintptr_t>(datatype::block_address(b.type, b.buffer));
    return from_a < from_b + of_b && from_b < from_a + of_a;
}

inline TypedBuffer block(const collective::Blocks& blocks, int i) { return {blocks.at(i), blocks.count(i), blocks.type(i)}; }

/// Returns whether `piece` shares memory with any of the first `n` blocks.
bool overlap(const TypedBuffer& piece, const collective::Blocks& blocks, int n);
/// Returns whether a block of `a` shares memory with the block of the same number in `b`; each has `n` blocks.
bool overlap(const collective::Blocks& a, const collective::Blocks& b, int n);

}  // namespace starling::mpi
