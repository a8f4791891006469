// The commonest reductions for processors with AVX2. Chosen at run time, see op.cpp.
#include "datatype/kernels.h"

#pragma GCC optimize("O3")
#pragma GCC target("avx2")

namespace starling::datatype::avx2 {

namespace {
#include "datatype/kernels.inc"
}  // namespace

Kernel find_kernel(Operation operation, Basic basic) {
    switch (operation) {
        case Operation::sum:
            return on_reals<Sum>(basic);
        case Operation::prod:
            return on_reals<Product>(basic);
        case Operation::min:
            return on_reals<Minimum>(basic);
        case Operation::max:
            return on_reals<Maximum>(basic);
        case Operation::band:
            return on_integers<BitAnd>(basic);
        case Operation::bor:
            return on_integers<BitOr>(basic);
        case Operation::bxor:
            return on_integers<BitXor>(basic);
        default:
            return nullptr;
    }
}

}  // namespace starling::datatype::avx2
