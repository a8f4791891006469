// The more common reductions, for any x86-64 processor; kernels_rare.cpp has the others.
#include "datatype/kernels.h"

#pragma GCC optimize("O3")

namespace starling::datatype {

namespace {
#include "datatype/kernels.inc"
}  // namespace

Kernel find_kernel(ReductionOperation operation, Basic basic) {
    const Kernel kernel = find_common(operation, basic);
    return kernel ? kernel : find_rare_kernel(operation, basic);
}

}  // namespace starling::datatype
