// The loops that reductions run.
#pragma once

#include <cstdint>

#include "datatype/op.h"

namespace starling::datatype {

/// out[i] = a[i] op b[i] for i < count. `out` may be `a` or `b`; otherwise they don't overlap.
using Kernel = void (*)(const void* a, const void* b, void* out, int64_t count);

/// Loops for any x86-64 processor; nullptr if the operation is not defined on such elements.
Kernel find_kernel(Operation operation, Basic basic);
/// The part of find_kernel() that is compiled for size.
Kernel find_rare_kernel(Operation operation, Basic basic);
/// For MPI_MINLOC and MPI_MAXLOC on pairs of a value and an index laid out as in a C struct.
Kernel find_pair_kernel(Operation operation, Basic value, Basic index);

/// The best of them for this processor.
Kernel kernel_for(const Op& op, const Datatype& type);

namespace avx2 {
/// The same for the commonest elements, for processors with AVX2; nullptr for others.
Kernel find_kernel(Operation operation, Basic basic);
}  // namespace avx2
namespace avx512 {
/// The same for processors with AVX-512 of the second generation, which does not slow them down.
Kernel find_kernel(Operation operation, Basic basic);
}  // namespace avx512

}  // namespace starling::datatype
