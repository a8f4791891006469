// Datatypes: predefined ones, handles, limits, wrong arguments, element counts.
#include "datatype/datatype.h"
#include "mpi-ext.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "datatype/construct.h"
#include "datatype/external32.h"
#include "datatype_reference.h"

namespace starling::test {
namespace {

int error_of(int combiner, std::vector<int64_t> args, std::vector<MPI_Datatype> handles) {
    std::vector<Datatype*> types;
    for (const MPI_Datatype handle : handles) types.push_back(&datatype::predefined(handle));
    Datatype* made = nullptr;
    const int error = datatype::make(combiner, true, std::move(args), types, &made);
    EXPECT_EQ(made != nullptr, error == MPI_SUCCESS);
    TypeRef holder(made);
    if (error) { EXPECT_FALSE(failure_text().empty()); }
    return error;
}

TEST(Predefined, TableMatchesTheAbi) {
    int found = 0;
    for (uintptr_t value = 0x200; value < 0x300; ++value) {
        const auto handle = reinterpret_cast<MPI_Datatype>(value);
        const Datatype* type = datatype::from_handle(handle);
        if (!type) continue;
        ++found;
        EXPECT_EQ(datatype::to_handle(type), handle);
        EXPECT_TRUE(type->committed);
        EXPECT_EQ(std::string(datatype::default_name(*type)).substr(0, 4), handle == MPIX_C_FLOAT16 ? "MPIX" : "MPI_");
        EXPECT_EQ(datatype::to_int(type), static_cast<int>(value));
        EXPECT_EQ(datatype::from_int(static_cast<int>(value)), type);
        // The MPI ABI encodes a type's size in handles within these ranges.
        const bool sized = (value >= 0x240 && value < 0x280) || value >= 0x2c0;
        if (sized) { EXPECT_EQ(type->size, 1 << ((value >> 3) & 7)) << datatype::default_name(*type); }
    }
    EXPECT_EQ(found, 71);  // the 70 of the standard, and MPIX_C_FLOAT16
    EXPECT_EQ(datatype::from_handle(MPI_DATATYPE_NULL), nullptr);
    EXPECT_EQ(datatype::from_handle(nullptr), nullptr);
    EXPECT_EQ(datatype::from_handle(reinterpret_cast<MPI_Datatype>(MPI_COMM_WORLD)), nullptr);
    EXPECT_EQ(datatype::from_handle(reinterpret_cast<MPI_Datatype>(0x1001)), nullptr);
}

TEST(Derived, DeepNestingNeedsNoStack) {
    Datatype* type = nullptr;
    ASSERT_EQ(datatype::make(MPI_COMBINER_CONTIGUOUS, false, {1}, {&datatype::predefined(MPI_INT)}, &type), MPI_SUCCESS);
    for (int level = 0; level < 300'000; ++level) {
        Datatype* outer = nullptr;
        ASSERT_EQ(datatype::make(MPI_COMBINER_CONTIGUOUS, false, {1}, {type}, &outer), MPI_SUCCESS);
        datatype::release(*type);
        type = outer;
    }
    EXPECT_EQ(type->size, 4);
    EXPECT_EQ(datatype::get_elements(4, *type), 1);
    EXPECT_EQ(datatype::get_elements(3, *type), MPI_UNDEFINED);
    EXPECT_EQ(datatype::bytes_of_elements(1, *type), 4u);
    EXPECT_EQ(datatype::external_size(*type), 4);
    int value = 0x01020304;
    std::byte bytes[4];
    EXPECT_EQ(datatype::pack_external(*type, 1, &value, bytes), bytes + 4);
    EXPECT_EQ(bytes[0], std::byte{1});
    datatype::release(*type);
}

TEST(Predefined, SizesAreTheCompilers) {
    const auto size = [](MPI_Datatype handle) { return datatype::predefined(handle).size; };
    EXPECT_EQ(size(MPI_LONG), sizeof(long));
    EXPECT_EQ(size(MPI_WCHAR), sizeof(wchar_t));
    EXPECT_EQ(size(MPI_LONG_DOUBLE), sizeof(long double));
    EXPECT_EQ(size(MPI_C_LONG_DOUBLE_COMPLEX), 2 * sizeof(long double));
    EXPECT_EQ(size(MPI_LONG_DOUBLE_INT), sizeof(long double) + sizeof(int));
    EXPECT_EQ(datatype::predefined(MPI_LONG_DOUBLE_INT).extent, 32);
    EXPECT_EQ(size(MPI_SHORT_INT), 6);
    EXPECT_EQ(datatype::predefined(MPI_SHORT_INT).extent, 8);
    EXPECT_STREQ(datatype::default_name(datatype::predefined(MPI_DOUBLE_INT)), "MPI_DOUBLE_INT");
}

TEST(Handles, LiveAsLongAsReferences) {
    Datatype* made = nullptr;
    ASSERT_EQ(datatype::make(MPI_COMBINER_CONTIGUOUS, false, {3}, {&datatype::predefined(MPI_INT)}, &made), MPI_SUCCESS);
    const MPI_Datatype handle = datatype::to_handle(made);
    EXPECT_EQ(datatype::from_handle(handle), made);
    const int number = datatype::to_int(made);
    EXPECT_GE(number, 0x1000);
    EXPECT_EQ(datatype::from_int(number), made);
    datatype::retain(*made);
    datatype::release(*made);
    EXPECT_EQ(datatype::from_handle(handle), made);
    datatype::release(*made);
    EXPECT_EQ(datatype::from_handle(handle), nullptr);
    EXPECT_EQ(datatype::from_int(number), nullptr);
}

TEST(Limits, HugeTypes) {
    const int64_t big = int64_t{1} << 40;
    Datatype* made = nullptr;
    ASSERT_EQ(datatype::make(MPI_COMBINER_CONTIGUOUS, true, {big}, {&datatype::predefined(MPI_DOUBLE)}, &made), 0);
    const TypeRef doubles(made);
    EXPECT_EQ(made->size, big * 8);
    EXPECT_TRUE(made->contiguous);
    EXPECT_EQ(datatype::packed_size(*made, 1000), 8000u * static_cast<uint64_t>(big));
    EXPECT_FALSE(datatype::packed_size_fits(*made, big));
    // A column of 2^33 ints, 2^20 bytes apart: it is accessed in the middle, not traversed.
    ASSERT_EQ(
        datatype::make(MPI_COMBINER_HVECTOR, true, {int64_t{1} << 33, 1, 1 << 20}, {&datatype::predefined(MPI_INT)}, &made), 0);
    const TypeRef column(made);
    EXPECT_EQ(made->size, int64_t{4} << 33);
    EXPECT_EQ(made->extent, (((int64_t{1} << 33) - 1) << 20) + 4);
    iovec list[2];
    ASSERT_EQ(datatype::blocks(*made, 1, nullptr, (uint64_t{1} << 34) + 2, list, 2), 2);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(list[0].iov_base), (uintptr_t{1} << 52) + 2);
    EXPECT_EQ(list[0].iov_len, 2u);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(list[1].iov_base), (uintptr_t{1} << 52) + (1 << 20));
    EXPECT_EQ(list[1].iov_len, 4u);
}

TEST(Limits, OverflowIsAnError) {
    const int64_t most = INT64_MAX;
    EXPECT_EQ(error_of(MPI_COMBINER_CONTIGUOUS, {most}, {MPI_INT}), MPI_ERR_VALUE_TOO_LARGE);
    EXPECT_EQ(error_of(MPI_COMBINER_CONTIGUOUS, {most}, {MPI_BYTE}), MPI_SUCCESS);
    EXPECT_EQ(error_of(MPI_COMBINER_VECTOR, {2, 1, most / 2}, {MPI_DOUBLE}), MPI_ERR_VALUE_TOO_LARGE);
    EXPECT_EQ(error_of(MPI_COMBINER_HVECTOR, {3, 1, most / 2}, {MPI_DOUBLE}), MPI_ERR_VALUE_TOO_LARGE);
    EXPECT_EQ(error_of(MPI_COMBINER_HVECTOR, {most, most, 0}, {MPI_BYTE}), MPI_ERR_VALUE_TOO_LARGE);
    EXPECT_EQ(error_of(MPI_COMBINER_HINDEXED, {2, 1, 1, -most, most}, {MPI_BYTE}), MPI_ERR_VALUE_TOO_LARGE);
    EXPECT_EQ(error_of(MPI_COMBINER_INDEXED_BLOCK, {1, 1, most}, {MPI_INT}), MPI_ERR_VALUE_TOO_LARGE);
    EXPECT_EQ(error_of(MPI_COMBINER_RESIZED, {most, 1}, {MPI_INT}), MPI_ERR_VALUE_TOO_LARGE);
    EXPECT_EQ(error_of(MPI_COMBINER_SUBARRAY, {2, most, most, 1, 1, 0, 0, MPI_ORDER_C}, {MPI_INT}), MPI_ERR_VALUE_TOO_LARGE);
}

TEST(Arguments, WrongArgumentsAreRefused) {
    EXPECT_EQ(error_of(MPI_COMBINER_CONTIGUOUS, {-1}, {MPI_INT}), MPI_ERR_COUNT);
    EXPECT_EQ(error_of(MPI_COMBINER_VECTOR, {1, -1, 1}, {MPI_INT}), MPI_ERR_ARG);
    EXPECT_EQ(error_of(MPI_COMBINER_INDEXED, {2, 1, -1, 0, 0}, {MPI_INT}), MPI_ERR_ARG);
    EXPECT_EQ(error_of(MPI_COMBINER_HINDEXED_BLOCK, {1, -2, 0}, {MPI_INT}), MPI_ERR_ARG);
    EXPECT_EQ(error_of(MPI_COMBINER_STRUCT, {1, -2, 0}, {MPI_INT}), MPI_ERR_ARG);
    const int64_t c = MPI_ORDER_C;
    EXPECT_EQ(error_of(MPI_COMBINER_SUBARRAY, {0, c}, {MPI_INT}), MPI_ERR_ARG);
    EXPECT_EQ(error_of(MPI_COMBINER_SUBARRAY, {1, 4, 2, 3, c}, {MPI_INT}), MPI_ERR_ARG);
    EXPECT_EQ(error_of(MPI_COMBINER_SUBARRAY, {1, 4, 5, 0, c}, {MPI_INT}), MPI_ERR_ARG);
    EXPECT_EQ(error_of(MPI_COMBINER_SUBARRAY, {1, 4, 2, 1, 99}, {MPI_INT}), MPI_ERR_ARG);
    const int64_t block = MPI_DISTRIBUTE_BLOCK, any = MPI_DISTRIBUTE_DFLT_DARG;
    EXPECT_EQ(error_of(MPI_COMBINER_DARRAY, {2, 0, 1, 10, block, any, 2, c}, {MPI_INT}), MPI_SUCCESS);
    EXPECT_EQ(error_of(MPI_COMBINER_DARRAY, {2, 2, 1, 10, block, any, 2, c}, {MPI_INT}), MPI_ERR_ARG);
    EXPECT_EQ(error_of(MPI_COMBINER_DARRAY, {3, 0, 1, 10, block, any, 2, c}, {MPI_INT}), MPI_ERR_ARG);
    EXPECT_EQ(error_of(MPI_COMBINER_DARRAY, {2, 0, 1, 10, block, 4, 2, c}, {MPI_INT}), MPI_ERR_ARG);
    EXPECT_EQ(error_of(MPI_COMBINER_DARRAY, {2, 0, 1, 10, MPI_DISTRIBUTE_NONE, any, 2, c}, {MPI_INT}), MPI_ERR_ARG);
    EXPECT_EQ(error_of(MPI_COMBINER_DARRAY, {2, 0, 1, 10, 3, any, 2, c}, {MPI_INT}), MPI_ERR_ARG);
}

TEST(Unnamed, F90TypesAreFoundAgain) {
    Datatype *a = nullptr, *b = nullptr, *c = nullptr;
    ASSERT_EQ(datatype::find_f90(MPI_COMBINER_F90_REAL, 15, 300, &a), MPI_SUCCESS);
    ASSERT_EQ(datatype::find_f90(MPI_COMBINER_F90_REAL, 15, 300, &b), MPI_SUCCESS);
    ASSERT_EQ(datatype::find_f90(MPI_COMBINER_F90_REAL, 6, MPI_UNDEFINED, &c), MPI_SUCCESS);
    EXPECT_EQ(a, b);
    EXPECT_EQ(a->size, 8);
    EXPECT_TRUE(a->contiguous && a->committed && a->permanent);
    EXPECT_EQ(c->size, 4);
    ASSERT_EQ(datatype::find_f90(MPI_COMBINER_F90_COMPLEX, 7, 10, &c), MPI_SUCCESS);
    EXPECT_EQ(c->size, 16);
    ASSERT_EQ(datatype::find_f90(MPI_COMBINER_F90_INTEGER, 0, 10, &c), MPI_SUCCESS);
    EXPECT_EQ(c->size, 8);
    EXPECT_EQ(datatype::find_f90(MPI_COMBINER_F90_INTEGER, 0, 100, &c), MPI_ERR_ARG);
    EXPECT_EQ(datatype::find_f90(MPI_COMBINER_F90_REAL, MPI_UNDEFINED, MPI_UNDEFINED, &c), MPI_ERR_ARG);
    EXPECT_EQ(datatype::match_size(MPI_TYPECLASS_REAL, 4), &datatype::predefined(MPI_REAL4));
    EXPECT_EQ(datatype::match_size(MPI_TYPECLASS_COMPLEX, 8), &datatype::predefined(MPI_COMPLEX8));
    EXPECT_EQ(datatype::match_size(MPI_TYPECLASS_INTEGER, 3), nullptr);
}

TEST(Unnamed, PairsOfValueAndIndex) {
    const auto find = [](MPI_Datatype value, MPI_Datatype index) {
        Datatype* found = nullptr;
        EXPECT_EQ(datatype::find_value_index(datatype::predefined(value), datatype::predefined(index), &found), 0);
        return found;
    };
    EXPECT_EQ(find(MPI_DOUBLE, MPI_INT), &datatype::predefined(MPI_DOUBLE_INT));
    EXPECT_EQ(find(MPI_REAL, MPI_REAL), &datatype::predefined(MPI_2REAL));
    const Datatype* pair = find(MPI_INT16_T, MPI_INT64_T);
    ASSERT_NE(pair, nullptr);
    EXPECT_EQ(pair, find(MPI_INT16_T, MPI_INT64_T));
    EXPECT_NE(pair, find(MPI_INT16_T, MPI_UINT64_T));
    EXPECT_EQ(pair->size, 10);
    EXPECT_EQ(pair->extent, 16);
    EXPECT_EQ(find(MPI_CHAR, MPI_INT), nullptr);
    EXPECT_EQ(find(MPI_INT, MPI_FLOAT), nullptr);
}

// Tests element counts for every possible number of bytes, with types whose element sizes are known.
TEST(Elements, CountedFromBytesAndBack) {
    RandomTypes random(5);
    for (int i = 0; i < 100; ++i) {
        const Sample sample = random.make(static_cast<int>(random.number(1, 3)), 60);
        if (sample.type->size == 0) continue;
        SCOPED_TRACE(sample.text);
        std::vector<int64_t> sums{0};
        for (int copy = 0; copy < 2; ++copy)
            for (const Entry& e : sample.map.entries) sums.push_back(sums.back() + e.size);
        for (int64_t elements = 0; elements < static_cast<int64_t>(sums.size()); ++elements) {
            const uint64_t bytes = static_cast<uint64_t>(sums[static_cast<size_t>(elements)]);
            EXPECT_EQ(datatype::get_elements(bytes, *sample.type), elements);
            EXPECT_EQ(datatype::bytes_of_elements(elements, *sample.type), bytes);
            const bool whole = bytes % static_cast<uint64_t>(sample.type->size) == 0;
            const int64_t count = static_cast<int64_t>(bytes) / sample.type->size;
            EXPECT_EQ(datatype::get_count(bytes, *sample.type), whole ? count : MPI_UNDEFINED);
            if (elements > 0 && sums[static_cast<size_t>(elements - 1)] + 1 < static_cast<int64_t>(bytes)) {
                EXPECT_EQ(datatype::get_elements(bytes - 1, *sample.type), MPI_UNDEFINED);
            }
        }
    }
}

TEST(Elements, CountedInEmptyTypes) {
    const Sample empty = contiguous(named(MPI_INT), 0);
    EXPECT_EQ(datatype::get_count(0, *empty.type), 0);
    EXPECT_EQ(datatype::get_elements(0, *empty.type), 0);
    EXPECT_EQ(datatype::get_count(4, *empty.type), MPI_UNDEFINED);
    EXPECT_EQ(datatype::bytes_of_elements(7, *empty.type), 0u);
}

}  // namespace
}  // namespace starling::test
