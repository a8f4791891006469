// Every type constructor against type maps written out by hand: bounds, packing from any offset, blocks, copies.
#include <gtest/gtest.h>

#include "datatype/construct.h"
#include "datatype_reference.h"

namespace starling::test {
namespace {

void expect_bounds(const Sample& sample) {
    EXPECT_EQ(sample.type->size, sample.map.size());
    EXPECT_EQ(sample.type->elements, static_cast<int64_t>(sample.map.entries.size()));
    EXPECT_EQ(sample.type->lb, sample.map.lb());
    EXPECT_EQ(sample.type->extent, sample.map.extent());
    EXPECT_EQ(sample.type->true_lb, sample.map.true_lb());
    EXPECT_EQ(sample.type->true_extent, sample.map.true_ub() - sample.map.true_lb());
}

std::vector<uint8_t> pack_whole(const Datatype& type, int64_t count, const void* buffer) {
    std::vector<uint8_t> out(datatype::packed_size(type, count) + 1, 0xee);
    EXPECT_EQ(datatype::pack(type, count, buffer, 0, out.data(), out.size()), out.size() - 1);
    EXPECT_EQ(out.back(), 0xee);
    out.pop_back();
    return out;
}

// Packs in pieces of random size, each with a new iterator.
std::vector<uint8_t> pack_in_pieces(const Datatype& type, int64_t count, const void* buffer, RandomTypes& random) {
    const uint64_t size = datatype::packed_size(type, count);
    std::vector<uint8_t> out(size);
    for (uint64_t at = 0; at < size;) {
        const uint64_t want = static_cast<uint64_t>(random.number(1, random.number(1, 300)));
        const uint64_t got = datatype::pack(type, count, buffer, at, out.data() + at, std::min(want, size - at));
        EXPECT_EQ(got, std::min(want, size - at));
        at += got;
    }
    return out;
}

std::vector<uint8_t> gather_blocks(const Datatype& type, int64_t count, const void* buffer, RandomTypes& random) {
    std::vector<uint8_t> out;
    const uint64_t size = datatype::packed_size(type, count);
    while (out.size() < size) {
        iovec list[5];
        const int n = datatype::blocks(type, count, buffer, out.size(), list, static_cast<int>(random.number(1, 5)));
        if (n == 0) break;
        for (int i = 0; i < n; ++i) {
            const auto* from = static_cast<const uint8_t*>(list[i].iov_base);
            // Take only half of the last block, so that the next call of blocks() begins in the middle of a block.
            const size_t length = i == n - 1 && list[i].iov_len > 1 ? list[i].iov_len / 2 : list[i].iov_len;
            out.insert(out.end(), from, from + length);
        }
    }
    iovec end;
    EXPECT_EQ(datatype::blocks(type, count, buffer, size, &end, 1), 0);
    return out;
}

// Unpacks at once and in pieces. Not for types that name a byte twice: the standard forbids receiving with them.
void expect_unpacked(const Sample& sample, int64_t count, const std::vector<uint8_t>& stream, RandomTypes& random) {
    const Datatype& type = *sample.type;
    Memory wanted(sample.map, count, 0xaa), whole(sample.map, count, 0xaa), pieces(sample.map, count, 0xaa);
    const uint8_t* from = stream.data();
    for (int64_t i = 0; i < count; ++i)
        for (const Entry& e : sample.map.entries) {
            std::copy(from, from + e.size, wanted.origin() + i * sample.map.extent() + e.at);
            from += e.size;
        }
    EXPECT_EQ(datatype::unpack(type, count, whole.origin(), 0, stream.data(), stream.size() + 9), stream.size());
    EXPECT_EQ(whole.bytes(), wanted.bytes());
    for (uint64_t at = 0; at < stream.size();) {
        const uint64_t want = std::min(static_cast<uint64_t>(random.number(1, 200)), stream.size() - at);
        EXPECT_EQ(datatype::unpack(type, count, pieces.origin(), at, stream.data() + at, want), want);
        at += want;
    }
    EXPECT_EQ(pieces.bytes(), wanted.bytes());
}

void expect_moves(const Sample& sample, int64_t count, RandomTypes& random) {
    const Datatype& type = *sample.type;
    Memory memory(sample.map, count);
    memory.scramble(7);
    const std::vector<uint8_t> expected = pack_plainly(sample.map, count, memory.origin());
    EXPECT_EQ(pack_whole(type, count, memory.origin()), expected);
    EXPECT_EQ(pack_in_pieces(type, count, memory.origin(), random), expected);
    EXPECT_EQ(gather_blocks(type, count, memory.origin(), random), expected);

    if (is_injective(sample, count, memory)) expect_unpacked(sample, count, expected, random);

    Memory copied(sample.map, count, 0xaa);
    datatype::copy(type, count, memory.origin(), copied.origin());
    EXPECT_EQ(pack_plainly(sample.map, count, copied.origin()), expected);
    if (count > 0 && type.size > 0) {
        const int64_t far = (count - 1) * sample.map.extent();
        const int64_t low = sample.map.true_lb() + std::min<int64_t>(0, far);
        const int64_t high = sample.map.true_ub() + std::max<int64_t>(0, far);
        EXPECT_EQ(datatype::span(type, count), static_cast<uint64_t>(high - low));
        EXPECT_EQ(datatype::span_offset(type, count), low);
    }
}

class Random : public testing::TestWithParam<uint32_t> {};

TEST_P(Random, NestedTypes) {
    RandomTypes random(GetParam());
    for (int i = 0; i < 120; ++i) {
        const Sample sample = random.make(static_cast<int>(random.number(1, 4)));
        SCOPED_TRACE(sample.text);
        expect_bounds(sample);
        for (const int64_t count : {int64_t{1}, int64_t{0}, random.number(2, 5)}) expect_moves(sample, count, random);
        if (HasFailure()) break;
    }
}
INSTANTIATE_TEST_SUITE_P(Seeds, Random, testing::Range(1u, 11u));

TEST(Layout, ContiguousLayoutsAreRecognized) {
    const Sample ints = contiguous(named(MPI_INT), 7);
    EXPECT_TRUE(ints.type->contiguous);
    EXPECT_TRUE(contiguous(ints, 3).type->contiguous);
    const Sample wide = resized(named(MPI_INT), 0, 8);
    EXPECT_FALSE(wide.type->contiguous);
    EXPECT_TRUE(wide.type->one_block);
    EXPECT_TRUE(datatype::is_block(*wide.type, 1));
    EXPECT_FALSE(datatype::is_block(*wide.type, 2));
    EXPECT_FALSE(named(MPI_DOUBLE_INT).type->contiguous && sizeof(double) + sizeof(int) != 16);
    // The constructor's arguments do not show at once that the blocks are adjacent.
    EXPECT_TRUE(indexed(named(MPI_INT), {2, 3}, {0, 2}, false).type->contiguous);
    EXPECT_TRUE(subarray(named(MPI_INT), {4, 5}, {4, 5}, {0, 0}, MPI_ORDER_C).type->contiguous);
    // The data is one block, which does not start at the buffer's address.
    const Sample shifted = indexed(named(MPI_INT), {3}, {4}, false);
    EXPECT_TRUE(shifted.type->contiguous);
    EXPECT_EQ(shifted.type->true_lb, 16);
    // The blocks are adjacent, but the type map has them in reverse order.
    EXPECT_FALSE(indexed(named(MPI_INT), {1, 1}, {1, 0}, false).type->contiguous);
}

TEST(Layout, ExplicitBoundsOutrankData) {
    const Sample marked = resized(named(MPI_INT), -4, 16);
    const Sample both = structure({&marked, &marked}, {1, 1}, {0, 100});
    EXPECT_EQ(both.type->lb, -4);
    EXPECT_EQ(both.type->extent, 116);
    const Sample number = named(MPI_DOUBLE);
    const Sample mixed = structure({&number, &marked}, {1, 1}, {-64, 0});
    EXPECT_EQ(mixed.type->lb, -4);
    EXPECT_EQ(mixed.type->extent, 16);
    EXPECT_EQ(mixed.type->true_lb, -64);
}

TEST(Layout, CopiesBetweenTwoTypes) {
    const Sample column = vector(named(MPI_INT), 6, 1, 5, false);
    const Sample pairs = vector(named(MPI_INT), 3, 2, 4, false);
    Memory from(column.map, 3), to(pairs.map, 3);
    from.scramble(3);
    ASSERT_EQ(datatype::copy(*column.type, 3, from.origin(), *pairs.type, 3, to.origin()), MPI_SUCCESS);
    EXPECT_EQ(pack_plainly(column.map, 3, from.origin()), pack_plainly(pairs.map, 3, to.origin()));
    EXPECT_EQ(datatype::copy(*column.type, 3, from.origin(), *pairs.type, 2, to.origin()), MPI_ERR_TRUNCATE);
}

TEST(Layout, AbsoluteAddresses) {
    int a = 1, b = 2;
    const Sample number = named(MPI_INT);
    const Sample scattered =
        structure({&number, &number}, {1, 1}, {reinterpret_cast<int64_t>(&b), reinterpret_cast<int64_t>(&a)});
    int out[2];
    EXPECT_EQ(datatype::pack(*scattered.type, 1, MPI_BOTTOM, 0, out, sizeof out), sizeof out);
    EXPECT_EQ(out[0], 2);
    EXPECT_EQ(out[1], 1);
}

TEST(Layout, ConstituentsOutliveTheirHandles) {
    Sample outer;
    {
        const Sample inner = vector(named(MPI_INT), 3, 1, 2, false);
        outer = vector(inner, 2, 1, 100, true);
    }
    std::vector<int> buffer(100, 0);
    for (int i = 0; i < 100; ++i) buffer[static_cast<size_t>(i)] = i;
    int out[6];
    EXPECT_EQ(datatype::pack(*outer.type, 1, buffer.data(), 0, out, sizeof out), sizeof out);
    EXPECT_EQ(std::vector<int>(out, out + 6), (std::vector<int>{0, 2, 4, 25, 27, 29}));
}

}  // namespace
}  // namespace starling::test
