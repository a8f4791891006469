// The external32 representation: known bytes, sizes, and conversion back.
#include "datatype/external32.h"

#include <gtest/gtest.h>

#include <complex>

#include "datatype_reference.h"

namespace starling::test {
namespace {

template <class T>
std::vector<int> bytes_of(MPI_Datatype handle, const T& value) {
    const Datatype& type = datatype::predefined(handle);
    std::vector<std::byte> out(static_cast<size_t>(datatype::external_size(type)));
    EXPECT_EQ(datatype::pack_external(type, 1, &value, out.data()), out.data() + out.size());
    std::vector<int> numbers;
    for (const std::byte byte : out) numbers.push_back(static_cast<int>(byte));
    T back{};
    EXPECT_EQ(datatype::unpack_external(type, 1, &back, out.data()), out.data() + out.size());
    EXPECT_TRUE(back == value);
    return numbers;
}

using Bytes = std::vector<int>;

TEST(External32, KnownBytes) {
    EXPECT_EQ(bytes_of(MPI_INT, 0x01020304), (Bytes{1, 2, 3, 4}));
    EXPECT_EQ(bytes_of(MPI_INT, -2), (Bytes{255, 255, 255, 254}));
    EXPECT_EQ(bytes_of(MPI_SHORT, short{0x0102}), (Bytes{1, 2}));
    EXPECT_EQ(bytes_of(MPI_BYTE, char{5}), (Bytes{5}));
    EXPECT_EQ(bytes_of(MPI_INT64_T, int64_t{0x0102030405060708}), (Bytes{1, 2, 3, 4, 5, 6, 7, 8}));
    EXPECT_EQ(bytes_of(MPI_DOUBLE, 1.0), (Bytes{0x3f, 0xf0, 0, 0, 0, 0, 0, 0}));
    EXPECT_EQ(bytes_of(MPI_FLOAT, -2.5f), (Bytes{0xc0, 0x20, 0, 0}));
    EXPECT_EQ(bytes_of(MPI_C_FLOAT_COMPLEX, std::complex<float>(1, -1)), (Bytes{0x3f, 0x80, 0, 0, 0xbf, 0x80, 0, 0}));
    EXPECT_EQ(bytes_of(MPI_WCHAR, L'\x20ac'), (Bytes{0x20, 0xac}));
    EXPECT_EQ(bytes_of(MPI_C_BOOL, true), (Bytes{1}));
    // Quadruple precision: exponent bias 16383, fraction .5 (MPI 5.0 table of external32 sizes: 16 bytes).
    EXPECT_EQ(bytes_of(MPI_LONG_DOUBLE, 1.5L), (Bytes{0x3f, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
    EXPECT_EQ(bytes_of(MPI_INTEGER16, static_cast<__int128>(-1)), Bytes(16, 255));
}

TEST(External32, LongIsFourBytes) {
    EXPECT_EQ(bytes_of(MPI_LONG, -3L), (Bytes{255, 255, 255, 253}));
    EXPECT_EQ(bytes_of(MPI_UNSIGNED_LONG, 0x80000001UL), (Bytes{128, 0, 0, 1}));
    EXPECT_EQ(datatype::external_size(datatype::predefined(MPI_AINT)), 8);
    EXPECT_EQ(datatype::external_size(datatype::predefined(MPI_LONG_LONG)), 8);
    struct Pair {
        long value;
        int index;
        bool operator==(const Pair& other) const { return value == other.value && index == other.index; }
    };
    EXPECT_EQ(bytes_of(MPI_LONG_INT, Pair{-1, 2}), (Bytes{255, 255, 255, 255, 0, 0, 0, 2}));
}

TEST(External32, DerivedTypesInTypeMapOrder) {
    const Sample number = named(MPI_INT), small = named(MPI_SHORT);
    const Sample mixed = structure({&number, &small}, {1, 2}, {4, 0});
    EXPECT_EQ(datatype::external_size(*mixed.type), 8);
    alignas(4) const unsigned char memory[] = {1, 2, 3, 4, 5, 6, 7, 8};
    std::vector<std::byte> out(8);
    datatype::pack_external(*mixed.type, 1, memory, out.data());
    Bytes numbers;
    for (const std::byte byte : out) numbers.push_back(static_cast<int>(byte));
    EXPECT_EQ(numbers, (Bytes{8, 7, 6, 5, 2, 1, 4, 3}));
}

TEST(External32, RandomTypesSurviveConversion) {
    RandomTypes random(3);
    int compared = 0;
    for (int i = 0; i < 200; ++i) {
        const Sample sample = random.make(static_cast<int>(random.number(1, 3)), 100);
        SCOPED_TRACE(sample.text);
        Memory memory(sample.map, 2);
        if (sample.type->size == 0 || !is_injective(sample, 2, memory)) continue;
        std::vector<std::byte> wire(static_cast<size_t>(2 * datatype::external_size(*sample.type)));
        // Any single set bit is a number that every type but long double can hold without loss of precision.
        const size_t place = static_cast<size_t>(random.number(0, static_cast<int64_t>(wire.size()) - 1));
        if (sample.text.find("LONG_DOUBLE") != std::string::npos) continue;
        wire[place] = std::byte{0x10};
        datatype::unpack_external(*sample.type, 2, memory.origin(), wire.data());
        std::vector<std::byte> again(wire.size());
        datatype::pack_external(*sample.type, 2, memory.origin(), again.data());
        EXPECT_EQ(again, wire);
        ++compared;
    }
    EXPECT_GT(compared, 40);
}

}  // namespace
}  // namespace starling::test
