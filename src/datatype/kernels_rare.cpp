// Reductions that are rare or cannot be vectorized: wide, half-precision and complex numbers, truth values, pairs. Compiled for size.
#include "datatype/kernels.h"

#pragma GCC optimize("Os")

namespace starling::datatype {

namespace {
#include "datatype/kernels.inc"

template <class T>
struct Complex {
    T real, imaginary;

    friend Complex operator+(Complex a, Complex b) {
        return {static_cast<T>(a.real + b.real), static_cast<T>(a.imaginary + b.imaginary)};
    }
    friend Complex operator*(Complex a, Complex b) {
        return {static_cast<T>(a.real * b.real - a.imaginary * b.imaginary),
                static_cast<T>(a.real * b.imaginary + a.imaginary * b.real)};
    }
};

template <class Function>
Kernel on_all_reals(Basic basic) {
    switch (basic) {
        case Basic::int128:
            return &loop<Function, __int128>;
        case Basic::float16:
            return &loop<Function, _Float16>;
        case Basic::float80:
            return &loop<Function, long double>;
        case Basic::float128:
            return &loop<Function, __float128>;
        default:
            return nullptr;
    }
}

template <class Function>
Kernel on_numbers(Basic basic) {
    switch (basic) {
        case Basic::complex16:
            return &loop<Function, Complex<_Float16>>;
        case Basic::complex32:
            return &loop<Function, Complex<float>>;
        case Basic::complex64:
            return &loop<Function, Complex<double>>;
        case Basic::complex80:
            return &loop<Function, Complex<long double>>;
        case Basic::complex128:
            return &loop<Function, Complex<__float128>>;
        default:
            return on_all_reals<Function>(basic);
    }
}

template <class Function>
Kernel on_long_bits(Basic basic) {
    return basic == Basic::int128 ? &loop<Function, __int128> : nullptr;
}

template <class Function>
Kernel on_truth(Basic basic) {
    switch (basic) {
        case Basic::boolean:
        case Basic::logical8:
            return &loop<Function, uint8_t>;
        case Basic::logical16:
            return &loop<Function, uint16_t>;
        case Basic::logical32:
            return &loop<Function, uint32_t>;
        case Basic::logical64:
            return &loop<Function, uint64_t>;
        case Basic::logical128:
        case Basic::int128:
            return &loop<Function, __int128>;
        default:
            return on_integers<Function>(basic);
    }
}

// Reduction of pairs: the better value wins; if the values are equal, the pair with the lower index.
template <class Value, class Index>
struct ValueIndexPair {
    Value value;
    Index index;
};

template <class Better, class Value, class Index>
void locate(const void* a_bytes, const void* b_bytes, void* out_bytes, int64_t count) {
    const auto* a = static_cast<const ValueIndexPair<Value, Index>*>(a_bytes);
    const auto* b = static_cast<const ValueIndexPair<Value, Index>*>(b_bytes);
    auto* out = static_cast<ValueIndexPair<Value, Index>*>(out_bytes);
    for (int64_t i = 0; i < count; ++i) {
        const bool first = a[i].value == b[i].value ? a[i].index < b[i].index : Better::better(a[i].value, b[i].value);
        const ValueIndexPair<Value, Index> winner = first ? a[i] : b[i];
        out[i].value = winner.value;
        out[i].index = winner.index;
    }
}

struct Less {
    template <class T>
    static bool better(T a, T b) {
        return a < b;
    }
};
struct Greater {
    template <class T>
    static bool better(T a, T b) {
        return a > b;
    }
};

template <class Better, class Value>
Kernel by_index(Basic index) {
    switch (index) {
        case Basic::int8:
            return &locate<Better, Value, int8_t>;
        case Basic::int16:
            return &locate<Better, Value, int16_t>;
        case Basic::int32:
            return &locate<Better, Value, int32_t>;
        case Basic::int64:
            return &locate<Better, Value, int64_t>;
        case Basic::uint8:
            return &locate<Better, Value, uint8_t>;
        case Basic::uint16:
            return &locate<Better, Value, uint16_t>;
        case Basic::uint32:
            return &locate<Better, Value, uint32_t>;
        case Basic::uint64:
            return &locate<Better, Value, uint64_t>;
        default:
            // Pairs with a floating-point index: MPI_2REAL and MPI_2DOUBLE_PRECISION.
            if constexpr (Value(1) / 2 != Value(0)) return &locate<Better, Value, Value>;
            return nullptr;
    }
}

template <class Better>
Kernel by_value(Basic value, Basic index) {
    switch (value) {
        case Basic::int8:
            return by_index<Better, int8_t>(index);
        case Basic::int16:
            return by_index<Better, int16_t>(index);
        case Basic::int32:
            return by_index<Better, int32_t>(index);
        case Basic::int64:
            return by_index<Better, int64_t>(index);
        case Basic::uint8:
            return by_index<Better, uint8_t>(index);
        case Basic::uint16:
            return by_index<Better, uint16_t>(index);
        case Basic::uint32:
            return by_index<Better, uint32_t>(index);
        case Basic::uint64:
            return by_index<Better, uint64_t>(index);
        case Basic::float32:
            return by_index<Better, float>(index);
        case Basic::float64:
            return by_index<Better, double>(index);
        case Basic::float80:
            return by_index<Better, long double>(index);
        default:
            return nullptr;
    }
}

}  // namespace

Kernel find_rare_kernel(ReductionOperation operation, Basic basic) {
    switch (operation) {
        case ReductionOperation::sum:
            return on_numbers<Sum>(basic);
        case ReductionOperation::prod:
            return on_numbers<Product>(basic);
        case ReductionOperation::min:
            return on_all_reals<Minimum>(basic);
        case ReductionOperation::max:
            return on_all_reals<Maximum>(basic);
        case ReductionOperation::band:
            return on_long_bits<BitAnd>(basic);
        case ReductionOperation::bor:
            return on_long_bits<BitOr>(basic);
        case ReductionOperation::bxor:
            return on_long_bits<BitXor>(basic);
        case ReductionOperation::land:
            return on_truth<LogicalAnd>(basic);
        case ReductionOperation::lor:
            return on_truth<LogicalOr>(basic);
        case ReductionOperation::lxor:
            return on_truth<LogicalXor>(basic);
        default:
            return nullptr;
    }
}

Kernel find_pair_kernel(ReductionOperation operation, Basic value, Basic index) {
    return operation == ReductionOperation::minloc ? by_value<Less>(value, index) : by_value<Greater>(value, index);
}

}  // namespace starling::datatype
