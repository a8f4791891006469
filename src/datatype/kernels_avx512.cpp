// The most common reductions, for processors with AVX-512. Chosen at run time, see op.cpp.
#include "datatype/kernels.h"

#pragma GCC optimize("O3")
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")

namespace starling::datatype::avx512 {

namespace {
#include "datatype/kernels.inc"
}  // namespace

Kernel find_kernel(ReductionOperation operation, Basic basic) {
    switch (operation) {
        case ReductionOperation::sum:
            return on_reals<Sum>(basic);
        case ReductionOperation::min:
            return on_reals<Minimum>(basic);
        case ReductionOperation::max:
            return on_reals<Maximum>(basic);
        default:
            return nullptr;
    }
}

}  // namespace starling::datatype::avx512
