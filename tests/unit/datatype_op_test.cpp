// Reduction operations against plain loops, and the types that each operation accepts.
#include "datatype/op.h"

#include <gtest/gtest.h>

#include <complex>
#include <functional>
#include <random>

#include "base/error.h"
#include "datatype/construct.h"
#include "datatype/kernels.h"

namespace starling::test {
namespace {

using datatype::Datatype;
using datatype::Op;

template <class T>
std::vector<T> numbers(size_t count, uint32_t seed) {
    std::mt19937 random(seed);
    std::vector<T> list(count);
    for (T& value : list) value = static_cast<T>(static_cast<int>(random() % 200) - 100);
    return list;
}

// Runs the operation in place, with three addresses, and with either input as output, for lengths around those of vector registers.
template <class T>
void expect_op(MPI_Op handle, MPI_Datatype type_handle, const std::function<T(T, T)>& plain) {
    const Op& op = datatype::predefined(handle);
    const Datatype& type = datatype::predefined(type_handle);
    SCOPED_TRACE(datatype::default_name(type));
    SCOPED_TRACE(op.pool_index);
    ASSERT_EQ(type.size, static_cast<int64_t>(sizeof(T)));
    EXPECT_TRUE(datatype::op_valid_for(op, type));
    for (const size_t count : {size_t{0}, size_t{1}, size_t{7}, size_t{64}, size_t{1003}}) {
        const std::vector<T> a = numbers<T>(count, 1), b = numbers<T>(count, 2);
        std::vector<T> expected(count), out(count), inout = b, left = a;
        for (size_t i = 0; i < count; ++i) expected[i] = plain(a[i], b[i]);
        const int64_t n = static_cast<int64_t>(count);
        EXPECT_EQ(datatype::apply(op, a.data(), inout.data(), n, type), MPI_SUCCESS);
        EXPECT_TRUE(inout == expected);
        EXPECT_EQ(datatype::apply_to(op, a.data(), b.data(), out.data(), n, type), MPI_SUCCESS);
        EXPECT_TRUE(out == expected);
        EXPECT_EQ(datatype::apply_to(op, left.data(), b.data(), left.data(), n, type), MPI_SUCCESS);
        EXPECT_TRUE(left == expected);
    }
}

template <class T>
void expect_arithmetic(std::initializer_list<MPI_Datatype> types) {
    for (const MPI_Datatype type : types) {
        expect_op<T>(MPI_SUM, type, [](T a, T b) { return static_cast<T>(a + b); });
        expect_op<T>(MPI_PROD, type, [](T a, T b) { return static_cast<T>(a * b); });
        expect_op<T>(MPI_MIN, type, [](T a, T b) { return b < a ? b : a; });
        expect_op<T>(MPI_MAX, type, [](T a, T b) { return b > a ? b : a; });
    }
}

template <class T>
void expect_integer(std::initializer_list<MPI_Datatype> types) {
    expect_arithmetic<T>(types);
    for (const MPI_Datatype type : types) {
        expect_op<T>(MPI_BAND, type, [](T a, T b) { return static_cast<T>(a & b); });
        expect_op<T>(MPI_BOR, type, [](T a, T b) { return static_cast<T>(a | b); });
        expect_op<T>(MPI_BXOR, type, [](T a, T b) { return static_cast<T>(a ^ b); });
        expect_op<T>(MPI_LAND, type, [](T a, T b) { return static_cast<T>(a && b); });
        expect_op<T>(MPI_LOR, type, [](T a, T b) { return static_cast<T>(a || b); });
        expect_op<T>(MPI_LXOR, type, [](T a, T b) { return static_cast<T>(!a != !b); });
    }
}

template <class T>
void expect_complex(std::initializer_list<MPI_Datatype> types) {
    for (const MPI_Datatype type : types) {
        expect_op<T>(MPI_SUM, type, [](T a, T b) { return a + b; });
        expect_op<T>(MPI_PROD, type, [](T a, T b) { return a * b; });
        EXPECT_FALSE(datatype::op_valid_for(datatype::predefined(MPI_MAX), datatype::predefined(type)));
    }
}

TEST(Op, Integers) {
    expect_integer<int8_t>({MPI_INT8_T, MPI_SIGNED_CHAR, MPI_INTEGER1});
    expect_integer<int16_t>({MPI_SHORT, MPI_INT16_T, MPI_INTEGER2});
    expect_integer<int32_t>({MPI_INT, MPI_INT32_T, MPI_INTEGER, MPI_INTEGER4});
    expect_integer<int64_t>({MPI_LONG, MPI_LONG_LONG, MPI_INT64_T, MPI_INTEGER8, MPI_AINT, MPI_COUNT, MPI_OFFSET});
    expect_integer<uint8_t>({MPI_UINT8_T, MPI_UNSIGNED_CHAR});
    expect_integer<uint16_t>({MPI_UNSIGNED_SHORT, MPI_UINT16_T});
    expect_integer<uint32_t>({MPI_UNSIGNED, MPI_UINT32_T});
    expect_integer<uint64_t>({MPI_UNSIGNED_LONG, MPI_UNSIGNED_LONG_LONG, MPI_UINT64_T});
    expect_integer<__int128>({MPI_INTEGER16});
}

TEST(Op, RealsAndComplex) {
    expect_arithmetic<_Float16>({MPI_REAL2});
    expect_arithmetic<float>({MPI_FLOAT, MPI_REAL, MPI_REAL4});
    expect_arithmetic<double>({MPI_DOUBLE, MPI_DOUBLE_PRECISION, MPI_REAL8});
    expect_arithmetic<long double>({MPI_LONG_DOUBLE});
    expect_arithmetic<__float128>({MPI_REAL16});
    expect_complex<std::complex<float>>({MPI_C_COMPLEX, MPI_CXX_FLOAT_COMPLEX, MPI_COMPLEX, MPI_COMPLEX8});
    expect_complex<std::complex<double>>({MPI_C_DOUBLE_COMPLEX, MPI_CXX_DOUBLE_COMPLEX, MPI_DOUBLE_COMPLEX, MPI_COMPLEX16});
    expect_complex<std::complex<long double>>({MPI_C_LONG_DOUBLE_COMPLEX, MPI_CXX_LONG_DOUBLE_COMPLEX});
}

TEST(Op, ComplexOfOtherWidths) {
    const __float128 a[2] = {1, 2}, b[2] = {3, -1};
    __float128 out[2];
    const Datatype& type = datatype::predefined(MPI_COMPLEX32);
    EXPECT_EQ(datatype::apply_to(datatype::predefined(MPI_PROD), a, b, out, 1, type), MPI_SUCCESS);
    EXPECT_TRUE(out[0] == 5 && out[1] == 5);
    const _Float16 c[2] = {1, 2};
    _Float16 d[2] = {3, -1};
    EXPECT_EQ(datatype::apply(datatype::predefined(MPI_SUM), c, d, 1, datatype::predefined(MPI_COMPLEX4)), MPI_SUCCESS);
    EXPECT_TRUE(d[0] == 4 && d[1] == 1);
}

TEST(Op, TruthAndBytes) {
    const uint8_t a[] = {0, 0, 1, 1}, b[] = {0, 1, 0, 1};
    uint8_t out[4];
    for (const MPI_Datatype type : {MPI_C_BOOL, MPI_CXX_BOOL, MPI_LOGICAL1}) {
        EXPECT_EQ(datatype::apply_to(datatype::predefined(MPI_LXOR), a, b, out, 4, datatype::predefined(type)), 0);
        EXPECT_EQ(std::vector<int>(out, out + 4), (std::vector<int>{0, 1, 1, 0}));
    }
    const uint8_t c[] = {0xf0}, d[] = {0x3c};
    EXPECT_EQ(datatype::apply_to(datatype::predefined(MPI_BAND), c, d, out, 1, datatype::predefined(MPI_BYTE)), 0);
    EXPECT_EQ(out[0], 0x30);
    // Every non-zero value is true, and the result for true is 1.
    const int32_t e[] = {-7, 0}, f[] = {2, 0};
    int32_t truth[2];
    EXPECT_EQ(datatype::apply_to(datatype::predefined(MPI_LAND), e, f, truth, 2, datatype::predefined(MPI_LOGICAL)), 0);
    EXPECT_EQ(truth[0], 1);
    EXPECT_EQ(truth[1], 0);
}

TEST(Op, SumsWrapAround) {
    int32_t in = INT32_MAX, inout = 1;
    EXPECT_EQ(datatype::apply(datatype::predefined(MPI_SUM), &in, &inout, 1, datatype::predefined(MPI_INT)), 0);
    EXPECT_EQ(inout, INT32_MIN);
}

template <class Value, class Index>
struct Pair {
    Value value;
    Index index;
    bool operator==(const Pair& other) const { return value == other.value && index == other.index; }
};

template <class Value, class Index>
void expect_location(const Datatype& type) {
    using P = Pair<Value, Index>;
    SCOPED_TRACE(datatype::default_name(type));
    ASSERT_EQ(type.extent, static_cast<int64_t>(sizeof(P)));
    const P a[] = {{1, 5}, {2, 5}, {3, 5}, {3, 9}}, b[] = {{2, 6}, {1, 6}, {3, 6}, {3, 7}};
    P out[4];
    EXPECT_EQ(datatype::apply_to(datatype::predefined(MPI_MINLOC), a, b, out, 4, type), MPI_SUCCESS);
    EXPECT_TRUE(out[0] == a[0] && out[1] == b[1] && out[2] == a[2] && out[3] == b[3]);
    EXPECT_EQ(datatype::apply_to(datatype::predefined(MPI_MAXLOC), a, b, out, 4, type), MPI_SUCCESS);
    EXPECT_TRUE(out[0] == b[0] && out[1] == a[1] && out[2] == a[2] && out[3] == b[3]);
    EXPECT_FALSE(datatype::op_valid_for(datatype::predefined(MPI_SUM), type));
}

TEST(Op, ValueAndIndex) {
    expect_location<float, int>(datatype::predefined(MPI_FLOAT_INT));
    expect_location<double, int>(datatype::predefined(MPI_DOUBLE_INT));
    expect_location<long, int>(datatype::predefined(MPI_LONG_INT));
    expect_location<int, int>(datatype::predefined(MPI_2INT));
    expect_location<short, int>(datatype::predefined(MPI_SHORT_INT));
    expect_location<long double, int>(datatype::predefined(MPI_LONG_DOUBLE_INT));
    expect_location<float, float>(datatype::predefined(MPI_2REAL));
    expect_location<double, double>(datatype::predefined(MPI_2DOUBLE_PRECISION));
    expect_location<int, int>(datatype::predefined(MPI_2INTEGER));
    Datatype* found = nullptr;
    ASSERT_EQ(datatype::find_value_index(datatype::predefined(MPI_UINT8_T), datatype::predefined(MPI_COUNT), &found), 0);
    expect_location<uint8_t, int64_t>(*found);
    ASSERT_EQ(datatype::find_value_index(datatype::predefined(MPI_DOUBLE), datatype::predefined(MPI_UINT16_T), &found), 0);
    expect_location<double, uint16_t>(*found);
}

// MPI does not define arithmetic on MPI_CHAR, but every other library supports it, and public benchmarks use it by default.
TEST(Op, CharactersAreSignedBytes) {
    for (const MPI_Datatype handle : {MPI_CHAR, MPI_CHARACTER}) {
        const Datatype& type = datatype::predefined(handle);
        for (const MPI_Op op :
             {MPI_SUM, MPI_PROD, MPI_MIN, MPI_MAX, MPI_LAND, MPI_LOR, MPI_LXOR, MPI_BAND, MPI_BOR, MPI_BXOR}) {
            const int8_t a[] = {100, -56, 0, 3}, b[] = {100, 100, 7, -5};
            int8_t out[4], expected[4];
            ASSERT_EQ(datatype::apply_to(datatype::predefined(op), a, b, expected, 4, datatype::predefined(MPI_INT8_T)), 0);
            ASSERT_EQ(datatype::apply_to(datatype::predefined(op), a, b, out, 4, type), 0);
            EXPECT_TRUE(std::equal(out, out + 4, expected));
            EXPECT_TRUE(datatype::op_valid_for(datatype::predefined(op), type));
        }
    }
}

TEST(Op, LogicalsAndBooleans) {
    for (const MPI_Datatype type : {MPI_C_BOOL, MPI_LOGICAL})
        for (const MPI_Op op : {MPI_LAND, MPI_LOR, MPI_LXOR})
            EXPECT_TRUE(datatype::op_valid_for(datatype::predefined(op), datatype::predefined(type)));
}

TEST(Op, NotDefinedOnEverything) {
    const auto valid = [](MPI_Op op, MPI_Datatype type) {
        return datatype::op_valid_for(datatype::predefined(op), datatype::predefined(type));
    };
    EXPECT_FALSE(valid(MPI_SUM, MPI_BYTE));
    EXPECT_FALSE(valid(MPI_SUM, MPI_C_BOOL));
    EXPECT_FALSE(valid(MPI_BAND, MPI_DOUBLE));
    EXPECT_FALSE(valid(MPI_LAND, MPI_DOUBLE));
    EXPECT_FALSE(valid(MPI_MINLOC, MPI_INT));
    EXPECT_FALSE(valid(MPI_REPLACE, MPI_INT));
    EXPECT_FALSE(valid(MPI_SUM, MPI_PACKED));
    EXPECT_FALSE(valid(MPI_SUM, MPI_WCHAR));
    int a = 1, b = 2;
    EXPECT_EQ(datatype::apply(datatype::predefined(MPI_SUM), &a, &b, 1, datatype::predefined(MPI_BYTE)), MPI_ERR_OP);
    EXPECT_NE(failure_text().find("MPI_BYTE"), std::string_view::npos);
    Datatype* made = nullptr;
    ASSERT_EQ(datatype::make(MPI_COMBINER_CONTIGUOUS, false, {2}, {&datatype::predefined(MPI_INT)}, &made), 0);
    const datatype::TypeRef holder(made);
    EXPECT_FALSE(datatype::op_valid_for(datatype::predefined(MPI_SUM), *made));
    EXPECT_TRUE(datatype::op_valid_for_window(datatype::predefined(MPI_SUM), *made));
    EXPECT_TRUE(datatype::op_valid_for_window(datatype::predefined(MPI_REPLACE), *made));
}

void subtract(void* in, void* inout, int* length, MPI_Datatype* type) {
    EXPECT_EQ(*type, MPI_INT);
    for (int i = 0; i < *length; ++i) static_cast<int*>(inout)[i] = static_cast<int*>(in)[i] - static_cast<int*>(inout)[i];
}
void subtract_large(void* in, void* inout, MPI_Count* length, MPI_Datatype*) {
    for (MPI_Count i = 0; i < *length; ++i)
        static_cast<int*>(inout)[i] = static_cast<int*>(in)[i] - static_cast<int*>(inout)[i];
}

TEST(Op, UserDefinedOperations) {
    for (Op* op : {datatype::make_op(&subtract, nullptr, false), datatype::make_op(nullptr, &subtract_large, false)}) {
        const MPI_Op handle = datatype::to_handle(op);
        EXPECT_EQ(datatype::from_handle(handle), op);
        EXPECT_FALSE(op->commutative);
        const int a[] = {10, 20}, b[] = {1, 2};
        int out[2];
        EXPECT_EQ(datatype::apply_to(*op, a, b, out, 2, datatype::predefined(MPI_INT)), MPI_SUCCESS);
        EXPECT_EQ(out[0], 9);
        EXPECT_EQ(out[1], 18);
        EXPECT_TRUE(datatype::op_valid_for(*op, datatype::predefined(MPI_INT)));
        datatype::release(*op);
        EXPECT_EQ(datatype::from_handle(handle), nullptr);
    }
}

TEST(Op, HandlesMatchTheAbi) {
    for (const MPI_Op handle : {MPI_SUM, MPI_MIN, MPI_MAX, MPI_PROD, MPI_BAND, MPI_BOR, MPI_BXOR, MPI_LAND, MPI_LOR, MPI_LXOR,
                                MPI_MINLOC, MPI_MAXLOC, MPI_REPLACE, MPI_NO_OP}) {
        const Op* op = datatype::from_handle(handle);
        ASSERT_NE(op, nullptr);
        EXPECT_EQ(datatype::to_handle(op), handle);
    }
    EXPECT_EQ(datatype::from_handle(MPI_OP_NULL), nullptr);
    EXPECT_EQ(datatype::from_handle(reinterpret_cast<MPI_Op>(MPI_INT)), nullptr);
}

// The loops for old processors return the results of those that the tests above ran.
TEST(Op, BaselineAgreesWithNewerProcessors) {
    using datatype::Basic;
    using datatype::ReductionOperation;
    for (const ReductionOperation operation :
         {ReductionOperation::sum, ReductionOperation::prod, ReductionOperation::min, ReductionOperation::max})
        for (const Basic basic : {Basic::int32, Basic::uint64, Basic::float32, Basic::float64}) {
            const size_t bytes = 8 * 1003;
            const std::vector<double> a = numbers<double>(1003, 3), b = numbers<double>(1003, 4);
            std::vector<double> x(1003), y(1003);
            const int64_t count = static_cast<int64_t>(bytes) / 8;
            datatype::find_kernel(operation, basic)(a.data(), b.data(), x.data(), count);
            if (__builtin_cpu_supports("avx2"))
                datatype::avx2::find_kernel(operation, basic)(a.data(), b.data(), y.data(), count);
            else
                y = x;
            EXPECT_EQ(std::memcmp(x.data(), y.data(), bytes), 0);
            const datatype::Kernel widest = datatype::avx512::find_kernel(operation, basic);
            if (!widest || !__builtin_cpu_supports("avx512vl") || !__builtin_cpu_supports("avx512dq")) continue;
            widest(a.data(), b.data(), y.data(), count);
            EXPECT_EQ(std::memcmp(x.data(), y.data(), bytes), 0);
        }
}

}  // namespace
}  // namespace starling::test
