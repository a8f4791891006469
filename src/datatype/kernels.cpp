// The commoner reductions, for any x86-64 processor; kernels_rare.cpp has the others.
#include "datatype/kernels.h"

#pragma GCC optimize("O3")

namespace starling::datatype {

namespace {
#include "datatype/kernels.inc"
}  // namespace

Kernel find_kernel(Operation operation, Basic basic) {
    Kernel kernel = nullptr;
    switch (operation) {
        case Operation::sum:
            kernel = on_reals<Sum>(basic);
            break;
        case Operation::prod:
            kernel = on_reals<Product>(basic);
            break;
        case Operation::min:
            kernel = on_reals<Minimum>(basic);
            break;
        case Operation::max:
            kernel = on_reals<Maximum>(basic);
            break;
        case Operation::band:
            kernel = on_integers<BitAnd>(basic);
            break;
        case Operation::bor:
            kernel = on_integers<BitOr>(basic);
            break;
        case Operation::bxor:
            kernel = on_integers<BitXor>(basic);
            break;
        default:
            break;
    }
    return kernel ? kernel : find_rare_kernel(operation, basic);
}

}  // namespace starling::datatype
