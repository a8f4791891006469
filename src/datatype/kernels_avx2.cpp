// The commonest reductions for processors with AVX2. Chosen at run time, see op.cpp.
#include "datatype/kernels.h"

#pragma GCC optimize("O3")
#pragma GCC target("avx2")

namespace starling::datatype::avx2 {

namespace {
#include "datatype/kernels.inc"
}  // namespace

Kernel find_kernel(ReductionOperation operation, Basic basic) { return find_common(operation, basic); }

}  // namespace starling::datatype::avx2
