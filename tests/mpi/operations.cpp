// Tests every predefined operation on every predefined type for which it is defined: MPI_Reduce_local against plain C++, then
// MPI_Allreduce. Also tests the pair types of MINLOC and MAXLOC.
#include <algorithm>
#include <complex>

#include "check.h"

namespace {

int rank, size;

template <class T>
T draw(int r, int i) {
    uint64_t s = test_seed + r * 131 + i * 7;
    return (T)(next_random(&s) % 13);
}

template <class T, class F>
void check(const char* name, MPI_Datatype type, MPI_Op op, F apply) {
    constexpr int kCount = 37;  // not a multiple of any vector width
    T mine[kCount], all[kCount], in[kCount], inout[kCount], before[kCount];
    for (int i = 0; i < kCount; i++) mine[i] = draw<T>(rank, i), in[i] = draw<T>(100, i), inout[i] = draw<T>(101, i);
    std::copy(inout, inout + kCount, before);
    OK(MPI_Reduce_local(in, inout, kCount, type, op));
    for (int i = 0; i < kCount; i++) CHECK(inout[i] == apply(in[i], before[i]), "%s: Reduce_local, element %d", name, i);
    OK(MPI_Allreduce(mine, all, kCount, type, op, MPI_COMM_WORLD));
    for (int i = 0; i < kCount; i++) {
        T wanted = draw<T>(0, i);
        for (int r = 1; r < size; r++) wanted = apply(wanted, draw<T>(r, i));
        CHECK(all[i] == wanted, "%s: Allreduce, element %d", name, i);
    }
}

template <class T>
void ordered(const char* name, MPI_Datatype type) {
    check<T>(name, type, MPI_MAX, [](T a, T b) { return std::max(a, b); });
    check<T>(name, type, MPI_MIN, [](T a, T b) { return std::min(a, b); });
}

template <class T>
void arithmetic(const char* name, MPI_Datatype type) {
    check<T>(name, type, MPI_SUM, [](T a, T b) { return (T)(a + b); });
    check<T>(name, type, MPI_PROD, [](T a, T b) { return (T)(a * b); });
}

template <class T>
void logical(const char* name, MPI_Datatype type) {
    check<T>(name, type, MPI_LAND, [](T a, T b) { return (T)(a && b); });
    check<T>(name, type, MPI_LOR, [](T a, T b) { return (T)(a || b); });
    check<T>(name, type, MPI_LXOR, [](T a, T b) { return (T)(!a != !b); });
}

template <class T>
void bitwise(const char* name, MPI_Datatype type) {
    check<T>(name, type, MPI_BAND, [](T a, T b) { return (T)(a & b); });
    check<T>(name, type, MPI_BOR, [](T a, T b) { return (T)(a | b); });
    check<T>(name, type, MPI_BXOR, [](T a, T b) { return (T)(a ^ b); });
}

template <class T>
void integer(const char* name, MPI_Datatype type) {
    ordered<T>(name, type);
    arithmetic<T>(name, type);
    logical<T>(name, type);
    bitwise<T>(name, type);
}

template <class T>
void location(const char* name, MPI_Datatype type) {
    struct Pair {
        T value;
        int where;
    };
    for (MPI_Op op : {MPI_MINLOC, MPI_MAXLOC}) {
        Pair mine[20], all[20];
        for (int i = 0; i < 20; i++) mine[i].value = (T)(draw<int>(rank, i) % 4), mine[i].where = 1000 - rank;
        OK(MPI_Allreduce(mine, all, 20, type, op, MPI_COMM_WORLD));
        for (int i = 0; i < 20; i++) {
            T best = (T)(draw<int>(0, i) % 4);
            int where = 1000;
            for (int r = 1; r < size; r++) {
                T v = (T)(draw<int>(r, i) % 4);
                bool better = op == MPI_MINLOC ? v < best : v > best;
                if (better || v == best) where = better ? 1000 - r : std::min(where, 1000 - r);
                best = better ? v : best;
            }
            CHECK(all[i].value == best && all[i].where == where, "%s element %d: %g at %d", name, i, (double)all[i].value,
                  all[i].where);
        }
    }
}

}  // namespace

int main(int argc, char** argv) {
    OK(MPI_Init(&argc, &argv));
    start_seed(3);
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    integer<signed char>("signed char", MPI_SIGNED_CHAR);
    integer<unsigned char>("unsigned char", MPI_UNSIGNED_CHAR);
    integer<short>("short", MPI_SHORT);
    integer<unsigned short>("unsigned short", MPI_UNSIGNED_SHORT);
    integer<int>("int", MPI_INT);
    integer<unsigned>("unsigned", MPI_UNSIGNED);
    integer<long>("long", MPI_LONG);
    integer<unsigned long>("unsigned long", MPI_UNSIGNED_LONG);
    integer<long long>("long long", MPI_LONG_LONG);
    integer<unsigned long long>("unsigned long long", MPI_UNSIGNED_LONG_LONG);
    integer<int8_t>("int8", MPI_INT8_T);
    integer<int16_t>("int16", MPI_INT16_T);
    integer<int32_t>("int32", MPI_INT32_T);
    integer<int64_t>("int64", MPI_INT64_T);
    integer<uint8_t>("uint8", MPI_UINT8_T);
    integer<uint16_t>("uint16", MPI_UINT16_T);
    integer<uint32_t>("uint32", MPI_UINT32_T);
    integer<uint64_t>("uint64", MPI_UINT64_T);
    ordered<MPI_Aint>("aint", MPI_AINT);
    arithmetic<MPI_Aint>("aint", MPI_AINT);
    arithmetic<MPI_Offset>("offset", MPI_OFFSET);
    arithmetic<MPI_Count>("count", MPI_COUNT);
    ordered<float>("float", MPI_FLOAT);
    ordered<double>("double", MPI_DOUBLE);
    ordered<long double>("long double", MPI_LONG_DOUBLE);
    arithmetic<float>("float", MPI_FLOAT);
    arithmetic<double>("double", MPI_DOUBLE);
    arithmetic<long double>("long double", MPI_LONG_DOUBLE);
    arithmetic<std::complex<float>>("complex float", MPI_C_FLOAT_COMPLEX);
    arithmetic<std::complex<double>>("complex double", MPI_C_DOUBLE_COMPLEX);
    logical<bool>("bool", MPI_C_BOOL);
    bitwise<unsigned char>("byte", MPI_BYTE);
    location<float>("float and int", MPI_FLOAT_INT);
    location<double>("double and int", MPI_DOUBLE_INT);
    location<long>("long and int", MPI_LONG_INT);
    location<int>("two ints", MPI_2INT);
    location<short>("short and int", MPI_SHORT_INT);
    location<long double>("long double and int", MPI_LONG_DOUBLE_INT);
    OK(MPI_Finalize());
    return 0;
}
