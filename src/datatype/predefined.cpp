// The table of named predefined datatypes. It holds no pointers, so that loading the library neither runs code nor relocates data for it.
#include <array>

#include "base/state.h"
#include "datatype/datatype.h"

namespace starling::datatype {

namespace {

struct Plain {
    uint16_t value;
    Basic basic;
    uint8_t size;
    uint8_t alignment;
    char name[28];
};

constexpr Basic kLong = sizeof(long) == 8 ? Basic::int64 : Basic::int32;
constexpr Basic kUnsignedLong = sizeof(long) == 8 ? Basic::uint64 : Basic::uint32;

// Predefined types other than pairs. MPI_CHAR is text; MPI_SIGNED_CHAR and MPI_UNSIGNED_CHAR are integers.
constexpr Plain kPlain[] = {
    {0x201, Basic::int64, 8, 8, "MPI_AINT"},
    {0x202, Basic::int64, 8, 8, "MPI_COUNT"},
    {0x203, Basic::int64, 8, 8, "MPI_OFFSET"},
    {0x207, Basic::packed, 1, 1, "MPI_PACKED"},
    {0x208, Basic::int16, 2, 2, "MPI_SHORT"},
    {0x209, Basic::int32, 4, 4, "MPI_INT"},
    {0x20a, kLong, sizeof(long), alignof(long), "MPI_LONG"},
    {0x20b, Basic::int64, 8, 8, "MPI_LONG_LONG"},
    {0x20c, Basic::uint16, 2, 2, "MPI_UNSIGNED_SHORT"},
    {0x20d, Basic::uint32, 4, 4, "MPI_UNSIGNED"},
    {0x20e, kUnsignedLong, sizeof(long), alignof(long), "MPI_UNSIGNED_LONG"},
    {0x20f, Basic::uint64, 8, 8, "MPI_UNSIGNED_LONG_LONG"},
    {0x210, Basic::float32, 4, 4, "MPI_FLOAT"},
    {0x212, Basic::complex32, 8, 4, "MPI_C_FLOAT_COMPLEX"},
    {0x213, Basic::complex32, 8, 4, "MPI_CXX_FLOAT_COMPLEX"},
    {0x214, Basic::float64, 8, 8, "MPI_DOUBLE"},
    {0x216, Basic::complex64, 16, 8, "MPI_C_DOUBLE_COMPLEX"},
    {0x217, Basic::complex64, 16, 8, "MPI_CXX_DOUBLE_COMPLEX"},
    {0x218, Basic::logical32, 4, 4, "MPI_LOGICAL"},
    {0x219, Basic::int32, 4, 4, "MPI_INTEGER"},
    {0x21a, Basic::float32, 4, 4, "MPI_REAL"},
    {0x21b, Basic::complex32, 8, 4, "MPI_COMPLEX"},
    {0x21c, Basic::float64, 8, 8, "MPI_DOUBLE_PRECISION"},
    {0x21d, Basic::complex64, 16, 8, "MPI_DOUBLE_COMPLEX"},
    {0x21e, Basic::character, 1, 1, "MPI_CHARACTER"},
    {0x220, Basic::float80, 16, 16, "MPI_LONG_DOUBLE"},
    {0x224, Basic::complex80, 32, 16, "MPI_C_LONG_DOUBLE_COMPLEX"},
    {0x225, Basic::complex80, 32, 16, "MPI_CXX_LONG_DOUBLE_COMPLEX"},
    {0x238, Basic::boolean, 1, 1, "MPI_C_BOOL"},
    {0x239, Basic::boolean, 1, 1, "MPI_CXX_BOOL"},
    {0x23c, Basic::wide_character, sizeof(wchar_t), alignof(wchar_t), "MPI_WCHAR"},
    {0x240, Basic::int8, 1, 1, "MPI_INT8_T"},
    {0x241, Basic::uint8, 1, 1, "MPI_UINT8_T"},
    {0x243, Basic::character, 1, 1, "MPI_CHAR"},
    {0x244, Basic::int8, 1, 1, "MPI_SIGNED_CHAR"},
    {0x245, Basic::uint8, 1, 1, "MPI_UNSIGNED_CHAR"},
    {0x247, Basic::byte, 1, 1, "MPI_BYTE"},
    {0x248, Basic::int16, 2, 2, "MPI_INT16_T"},
    {0x249, Basic::uint16, 2, 2, "MPI_UINT16_T"},
    {0x24a, Basic::float16, 2, 2, "MPIX_C_FLOAT16"},
    {0x250, Basic::int32, 4, 4, "MPI_INT32_T"},
    {0x251, Basic::uint32, 4, 4, "MPI_UINT32_T"},
    {0x258, Basic::int64, 8, 8, "MPI_INT64_T"},
    {0x259, Basic::uint64, 8, 8, "MPI_UINT64_T"},
    {0x2c0, Basic::logical8, 1, 1, "MPI_LOGICAL1"},
    {0x2c1, Basic::int8, 1, 1, "MPI_INTEGER1"},
    {0x2c8, Basic::logical16, 2, 2, "MPI_LOGICAL2"},
    {0x2c9, Basic::int16, 2, 2, "MPI_INTEGER2"},
    {0x2ca, Basic::float16, 2, 2, "MPI_REAL2"},
    {0x2d0, Basic::logical32, 4, 4, "MPI_LOGICAL4"},
    {0x2d1, Basic::int32, 4, 4, "MPI_INTEGER4"},
    {0x2d2, Basic::float32, 4, 4, "MPI_REAL4"},
    {0x2d3, Basic::complex16, 4, 2, "MPI_COMPLEX4"},
    {0x2d8, Basic::logical64, 8, 8, "MPI_LOGICAL8"},
    {0x2d9, Basic::int64, 8, 8, "MPI_INTEGER8"},
    {0x2da, Basic::float64, 8, 8, "MPI_REAL8"},
    {0x2db, Basic::complex32, 8, 4, "MPI_COMPLEX8"},
    {0x2e0, Basic::logical128, 16, 16, "MPI_LOGICAL16"},
    {0x2e1, Basic::int128, 16, 16, "MPI_INTEGER16"},
    {0x2e2, Basic::float128, 16, 16, "MPI_REAL16"},
    {0x2e3, Basic::complex64, 16, 8, "MPI_COMPLEX16"},
    {0x2eb, Basic::complex128, 32, 16, "MPI_COMPLEX32"},
};

struct PairType {
    uint16_t value;
    Basic first, second;
    uint8_t size, extent, true_extent, index_offset, alignment;
    char name[24];
};

struct DoubleInt {
    double value;
    int index;
};
struct LongInt {
    long value;
    int index;
};
struct ShortInt {
    short value;
    int index;
};
struct LongDoubleInt {
    long double value;
    int index;
};

template <class Struct, class Value>
constexpr PairType with_int(uint16_t abi, Basic first, const char (&name)[24]) {
    PairType pair{abi,
                  first,
                  Basic::int32,
                  sizeof(Value) + sizeof(int),
                  sizeof(Struct),
                  offsetof(Struct, index) + sizeof(int),
                  offsetof(Struct, index),
                  alignof(Struct),
                  {}};
    for (int i = 0; i < 24; ++i) pair.name[i] = name[i];
    return pair;
}

constexpr char kDoubleInt[24] = "MPI_DOUBLE_INT", kLongInt[24] = "MPI_LONG_INT", kShortInt[24] = "MPI_SHORT_INT",
               kLongDoubleInt[24] = "MPI_LONG_DOUBLE_INT";

constexpr PairType kPairs[] = {
    {0x228, Basic::float32, Basic::int32, 8, 8, 8, 4, 4, "MPI_FLOAT_INT"},
    with_int<DoubleInt, double>(0x229, Basic::float64, kDoubleInt),
    with_int<LongInt, long>(0x22a, kLong, kLongInt),
    {0x22b, Basic::int32, Basic::int32, 8, 8, 8, 4, 4, "MPI_2INT"},
    with_int<ShortInt, short>(0x22c, Basic::int16, kShortInt),
    with_int<LongDoubleInt, long double>(0x22d, Basic::float80, kLongDoubleInt),
    {0x230, Basic::float32, Basic::float32, 8, 8, 8, 4, 4, "MPI_2REAL"},
    {0x231, Basic::float64, Basic::float64, 16, 16, 16, 8, 8, "MPI_2DOUBLE_PRECISION"},
    {0x232, Basic::int32, Basic::int32, 8, 8, 8, 4, 4, "MPI_2INTEGER"},
};

constexpr Datatype described(uint16_t value, Basic basic, int64_t size, uint8_t alignment) {
    Datatype type;
    type.magic = Datatype::kMagic;
    type.pool_index = value;
    type.size = size;
    type.extent = type.true_extent = size;
    type.contiguous = type.one_block = true;
    type.committed = type.predefined = type.permanent = true;
    type.basic = basic;
    type.alignment = alignment;
    type.elements = 1;
    return type;
}

consteval std::array<Datatype, 256> make_predefined_types() {
    std::array<Datatype, 256> table;
    for (const Plain& plain : kPlain)
        table[plain.value & 0xff] = described(plain.value, plain.basic, plain.size, plain.alignment);
    for (const PairType& pair : kPairs) {
        Datatype type = described(pair.value, Basic::pair, pair.size, pair.alignment);
        type.extent = pair.extent;
        type.true_extent = pair.true_extent;
        type.contiguous = pair.extent == pair.size;
        type.one_block = pair.true_extent == pair.size;
        type.value = pair.first;
        type.index = pair.second;
        type.index_offset = pair.index_offset;
        type.elements = 2;
        table[pair.value & 0xff] = type;
    }
    return table;
}

}  // namespace

STARLING_STATE std::array<Datatype, 256> predefined_types = make_predefined_types();

const char* default_name(const Datatype& type) {
    if (!type.predefined) return type.recipe ? "" : "MPI_DATATYPE_NULL";
    for (const Plain& plain : kPlain)
        if (plain.value == type.pool_index) return plain.name;
    for (const PairType& pair : kPairs)
        if (pair.value == type.pool_index) return pair.name;
    return "";
}

}  // namespace starling::datatype
