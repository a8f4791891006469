// The inner loops of reductions.
#pragma once

#include <cstdint>

#include "datatype/op.h"

namespace starling::datatype {

/// Computes out[i] = a[i] op b[i] for i < count. `out` may be `a` or `b`; otherwise they must not overlap.
using Kernel = void (*)(const void* a, const void* b, void* out, int64_t count);

/// Returns a loop for any x86-64 processor; nullptr if the operation is not defined on such elements.
Kernel find_kernel(ReductionOperation operation, Basic basic);
/// Returns a loop for the rarer operations and elements, which is compiled for size; used by find_kernel().
Kernel find_rare_kernel(ReductionOperation operation, Basic basic);
/// Returns a loop for MPI_MINLOC and MPI_MAXLOC on pairs of a value and an index, laid out as in a C struct.
Kernel find_pair_kernel(ReductionOperation operation, Basic value, Basic index);

/// Returns the fastest loop for this operation and type on this processor.
Kernel kernel_for(const Op& op, const Datatype& type);

namespace avx2 {
/// Returns a loop for the commonest elements on processors with AVX2; nullptr for other elements.
Kernel find_kernel(ReductionOperation operation, Basic basic);
}  // namespace avx2
namespace avx512 {
/// Returns a loop for processors with second-generation AVX-512, whose use does not slow the processor down.
Kernel find_kernel(ReductionOperation operation, Basic basic);
}  // namespace avx512

}  // namespace starling::datatype
