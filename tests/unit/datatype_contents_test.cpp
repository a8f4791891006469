// The result of MPI_Type_get_contents makes an equal type; its numbers are in the places that the standard defines.
#include <gtest/gtest.h>

#include "datatype/contents.h"
#include "datatype_reference.h"

namespace starling::test {
namespace {

using datatype::Contents;

Contents contents_of(const Sample& sample, bool large) {
    Contents contents;
    EXPECT_TRUE(datatype::sort_contents(*sample.type->recipe, large, contents));
    return contents;
}

using Ints = std::vector<int>;
using Wide = std::vector<int64_t>;

TEST(Contents, IntegersAndAddresses) {
    const Sample number = named(MPI_INT);
    Contents c = contents_of(vector(number, 2, 3, 4, false), false);
    EXPECT_EQ(c.integers, (Ints{2, 3, 4}));
    EXPECT_EQ(c.addresses, Wide{});
    c = contents_of(vector(number, 2, 3, 4, true), false);
    EXPECT_EQ(c.integers, (Ints{2, 3}));
    EXPECT_EQ(c.addresses, (Wide{4}));
    c = contents_of(indexed(number, {1, 2}, {3, 9}, false), false);
    EXPECT_EQ(c.integers, (Ints{2, 1, 2, 3, 9}));
    c = contents_of(indexed(number, {1, 2}, {3, 9}, true), false);
    EXPECT_EQ(c.integers, (Ints{2, 1, 2}));
    EXPECT_EQ(c.addresses, (Wide{3, 9}));
    c = contents_of(indexed_block(number, 5, {3, 9}, false), false);
    EXPECT_EQ(c.integers, (Ints{2, 5, 3, 9}));
    c = contents_of(indexed_block(number, 5, {3, 9}, true), false);
    EXPECT_EQ(c.integers, (Ints{2, 5}));
    EXPECT_EQ(c.addresses, (Wide{3, 9}));
    c = contents_of(structure({&number, &number}, {1, 2}, {0, 8}), false);
    EXPECT_EQ(c.integers, (Ints{2, 1, 2}));
    EXPECT_EQ(c.addresses, (Wide{0, 8}));
    c = contents_of(resized(number, -4, 12), false);
    EXPECT_EQ(c.integers, Ints{});
    EXPECT_EQ(c.addresses, (Wide{-4, 12}));
    c = contents_of(subarray(number, {4, 5}, {2, 3}, {1, 0}, MPI_ORDER_C), false);
    EXPECT_EQ(c.integers, (Ints{2, 4, 5, 2, 3, 1, 0, MPI_ORDER_C}));
}

TEST(Contents, LargeCounts) {
    const Sample number = named(MPI_INT);
    Contents c = contents_of(vector(number, 2, 3, 4, true), true);
    EXPECT_EQ(c.integers, Ints{});
    EXPECT_EQ(c.addresses, Wide{});
    EXPECT_EQ(c.large_counts, (Wide{2, 3, 4}));
    c = contents_of(subarray(number, {4, 5}, {2, 3}, {1, 0}, MPI_ORDER_C), true);
    EXPECT_EQ(c.integers, (Ints{2, MPI_ORDER_C}));
    EXPECT_EQ(c.large_counts, (Wide{4, 5, 2, 3, 1, 0}));
    const int block = MPI_DISTRIBUTE_BLOCK, cyclic = MPI_DISTRIBUTE_CYCLIC, any = MPI_DISTRIBUTE_DFLT_DARG;
    c = contents_of(darray(number, 1, {{6, block, any, 2}, {7, cyclic, 2, 3}}, MPI_ORDER_FORTRAN), true);
    EXPECT_EQ(c.integers, (Ints{6, 1, 2, block, cyclic, any, 2, 2, 3, MPI_ORDER_FORTRAN}));
    EXPECT_EQ(c.large_counts, (Wide{6, 7}));
    c = contents_of(darray(number, 1, {{6, block, any, 2}, {7, cyclic, 2, 3}}, MPI_ORDER_FORTRAN), false);
    EXPECT_EQ(c.integers, (Ints{6, 1, 2, 6, 7, block, cyclic, any, 2, 2, 3, MPI_ORDER_FORTRAN}));
    c = contents_of(structure({&number}, {2}, {8}), true);
    EXPECT_EQ(c.large_counts, (Wide{1, 2, 8}));
}

TEST(Contents, NumbersBeyondAnInt) {
    Datatype* made = nullptr;
    ASSERT_EQ(datatype::make(MPI_COMBINER_CONTIGUOUS, true, {int64_t{1} << 33}, {&datatype::predefined(MPI_BYTE)}, &made),
              MPI_SUCCESS);
    const TypeRef holder(made);
    Contents narrow, wide;
    EXPECT_FALSE(datatype::sort_contents(*made->recipe, false, narrow));
    EXPECT_TRUE(datatype::sort_contents(*made->recipe, true, wide));
    EXPECT_EQ(wide.large_counts, (Wide{int64_t{1} << 33}));
}

TEST(Contents, MakeTheSameTypeAgain) {
    RandomTypes random(11);
    for (int i = 0; i < 200; ++i) {
        const Sample sample = random.make(2);
        if (!sample.type->recipe) continue;
        SCOPED_TRACE(sample.text);
        const datatype::Recipe& recipe = *sample.type->recipe;
        const Contents c = contents_of(sample, false);
        EXPECT_EQ(c.integers.size() + c.addresses.size(), recipe.args.size());
        Datatype* made = nullptr;
        ASSERT_EQ(datatype::make(recipe.combiner, recipe.large, recipe.args, recipe.types, &made), MPI_SUCCESS);
        const TypeRef again(made);
        Memory memory(sample.map, 2);
        memory.scramble(5);
        std::vector<uint8_t> out(datatype::packed_size(*again, 2));
        datatype::pack(*again, 2, memory.origin(), 0, out.data(), out.size());
        EXPECT_EQ(out, pack_plainly(sample.map, 2, memory.origin()));
    }
}

}  // namespace
}  // namespace starling::test
