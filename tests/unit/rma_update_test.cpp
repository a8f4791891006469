// RMA updates: every operation on every element type that windows support, compared with the reductions. Each element changes atomically,
// however many threads update single elements or sequences of them.
#include "rma/update.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "base/barrier.h"

namespace starling::rma {
namespace {

constexpr int kCount = 37;

/// An update lock's shared state. Threads play the processes: each has a separate mark.
struct Shared {
    Guard guard{};
    UpdateMark marks[4] = {};
    UpdateLock at(uint32_t place) { return {guard, marks, static_cast<uint32_t>(std::size(marks)), place, 0}; }
};

/// Fills the buffer with values of few bits, so that no operation overflows.
void fill(const Datatype& type, std::vector<std::byte>& buffer, std::mt19937_64& random) {
    using datatype::Basic;
    const auto set = [&](auto one) {
        for (size_t at = 0; at + sizeof one <= buffer.size(); at += sizeof one) {
            one = static_cast<decltype(one)>(random() % 4);
            std::memcpy(buffer.data() + at, &one, sizeof one);
        }
    };
    if (&type == &datatype::predefined(MPI_FLOAT)) return set(float{});
    if (&type == &datatype::predefined(MPI_DOUBLE)) return set(double{});
    if (type.size == 8) return set(uint64_t{});
    if (type.size == 4) return set(uint32_t{});
    if (type.size == 2) return set(uint16_t{});
    set(uint8_t{});
}

/// Compares an update of the whole buffer with the standard's definition, by which one element is updated after the other.
void compare(const Datatype& type, const Op& op, bool aligned, std::mt19937_64& random) {
    const auto bytes = static_cast<size_t>(type.extent) * kCount;
    std::vector<std::byte> room(bytes + 64), operand(static_cast<size_t>(type.size) * kCount), old(operand.size());
    std::byte* memory = room.data() + (aligned ? 0 : 1);
    std::vector<std::byte> start(bytes);
    fill(type, start, random);
    fill(type, operand, random);
    std::memcpy(memory, start.data(), bytes);
    Shared shared;
    const UpdateLock exclusion = shared.at(1);
    update({&type, &op}, memory, operand.data(), old.data(), kCount, &exclusion);
    EXPECT_EQ(std::memcmp(old.data(), start.data(), bytes), 0) << "what was there before";
    std::vector<std::byte> expected = start;
    ASSERT_EQ(datatype::apply_to(op, operand.data(), start.data(), expected.data(), kCount, type), MPI_SUCCESS);
    EXPECT_EQ(std::memcmp(memory, expected.data(), bytes), 0);
    EXPECT_EQ(shared.guard.holder.load(), 0u);
    // The same update without fetching old values, then without an update lock (word by word), then of single elements.
    std::memcpy(memory, start.data(), bytes);
    update({&type, &op}, memory, operand.data(), nullptr, kCount, &exclusion);
    EXPECT_EQ(std::memcmp(memory, expected.data(), bytes), 0);
    std::memcpy(memory, start.data(), bytes);
    update({&type, &op}, memory, operand.data(), nullptr, kCount, nullptr);
    EXPECT_EQ(std::memcmp(memory, expected.data(), bytes), 0);
    std::memcpy(memory, start.data(), bytes);
    update({&type, &op}, memory, operand.data(), nullptr, 1, &exclusion);
    EXPECT_EQ(std::memcmp(memory, expected.data(), static_cast<size_t>(type.size)), 0);
    EXPECT_EQ(std::memcmp(memory + type.size, start.data() + type.size, bytes - static_cast<size_t>(type.size)), 0);
    EXPECT_EQ(shared.marks[1].target.load(), 0u);
}

TEST(Update, AgreesWithTheReduction) {
    std::mt19937_64 random(7);
    int pairs = 0;
    for (const MPI_Datatype handle : {MPI_INT8_T, MPI_UINT16_T, MPI_INT32_T, MPI_INT64_T, MPI_UINT64_T, MPI_FLOAT, MPI_DOUBLE})
        for (const MPI_Op operation : {MPI_SUM, MPI_PROD, MPI_MIN, MPI_MAX, MPI_BAND, MPI_BOR, MPI_BXOR, MPI_LAND, MPI_LOR,
                                       MPI_LXOR, MPI_REPLACE, MPI_NO_OP}) {
            const Datatype& type = datatype::predefined(handle);
            const Op& op = datatype::predefined(operation);
            if (!datatype::op_valid_for_window(op, type)) continue;
            SCOPED_TRACE(testing::Message() << type.name << " " << static_cast<int>(op.operation));
            compare(type, op, true, random);
            compare(type, op, false, random);
            ++pairs;
        }
    EXPECT_GT(pairs, 60);
}

TEST(Update, ConcurrentUpdatesOfManyThreadsLoseNothing) {
    constexpr int kThreads = 4, kTimes = 3000;
    register_for_barriers();  // allows the update lock to switch to its quick mode for single elements
    alignas(64) double sums[kCount] = {};
    alignas(64) long double guarded[kCount] = {};
    uint64_t tickets[kThreads * kTimes] = {};
    uint64_t ticket = 0, words[kCount] = {};
    Shared shared;
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t)
        threads.emplace_back([&, t] {
            const UpdateLock exclusion = shared.at(static_cast<uint32_t>(t));
            const Update sum{&datatype::predefined(MPI_DOUBLE), &datatype::predefined(MPI_SUM)};
            const Update long_sum{&datatype::predefined(MPI_LONG_DOUBLE), &datatype::predefined(MPI_SUM)};
            const Update next{&datatype::predefined(MPI_UINT64_T), &datatype::predefined(MPI_SUM)};
            double ones[kCount];
            long double long_ones[kCount];
            std::fill(std::begin(ones), std::end(ones), 1.0);
            std::fill(std::begin(long_ones), std::end(long_ones), 1.0L);
            const uint64_t one = 1;
            uint64_t word_ones[kCount];
            std::fill(std::begin(word_ones), std::end(word_ones), 1);
            for (int i = 0; i < kTimes; ++i) {
                update(sum, reinterpret_cast<std::byte*>(sums), reinterpret_cast<std::byte*>(ones), nullptr, kCount,
                       &exclusion);
                update(long_sum, reinterpret_cast<std::byte*>(guarded), reinterpret_cast<std::byte*>(long_ones), nullptr,
                       kCount, &exclusion);
                update(next, reinterpret_cast<std::byte*>(&ticket), reinterpret_cast<const std::byte*>(&one),
                       reinterpret_cast<std::byte*>(&tickets[t * kTimes + i]), 1, &exclusion);
                // Update all words by one call, then each word by a call.
                update(next, reinterpret_cast<std::byte*>(words), reinterpret_cast<std::byte*>(word_ones), nullptr, kCount,
                       &exclusion);
                for (uint64_t& word : words)
                    update(next, reinterpret_cast<std::byte*>(&word), reinterpret_cast<const std::byte*>(&one), nullptr, 1,
                           &exclusion);
                for (double& word : sums)
                    update(sum, reinterpret_cast<std::byte*>(&word), reinterpret_cast<const std::byte*>(ones), nullptr, 1,
                           &exclusion);
            }
        });
    for (std::thread& thread : threads) thread.join();
    for (int i = 0; i < kCount; ++i) {
        EXPECT_EQ(sums[i], 2 * kThreads * kTimes);
        EXPECT_EQ(guarded[i], kThreads * kTimes);
        EXPECT_EQ(words[i], 2u * kThreads * kTimes);
    }
    std::sort(std::begin(tickets), std::end(tickets));
    for (uint64_t i = 0; i < std::size(tickets); ++i) ASSERT_EQ(tickets[i], i);
}

TEST(Update, CompareAndSwapComparesAndSwaps) {
    for (const MPI_Datatype handle : {MPI_INT8_T, MPI_INT16_T, MPI_INT32_T, MPI_INT64_T})
        for (const size_t offset : {size_t{0}, size_t{1}}) {
            const Datatype& type = datatype::predefined(handle);
            const auto size = static_cast<size_t>(type.size);
            alignas(16) std::byte room[32] = {};
            std::byte *memory = room + offset, before[8] = {}, other[8], value[8];
            std::memset(other, 3, sizeof other);
            std::memset(value, 5, sizeof value);
            std::memset(memory, 4, size);
            Shared shared;
            const UpdateLock exclusion = shared.at(0);
            compare_and_swap(type, memory, value, other, before, &exclusion);
            EXPECT_EQ(static_cast<int>(memory[0]), 4) << "the comparison failed, so the value is unchanged";
            EXPECT_EQ(static_cast<int>(before[size - 1]), 4);
            std::memset(other, 4, sizeof other);
            compare_and_swap(type, memory, value, other, before, &exclusion);
            EXPECT_EQ(static_cast<int>(memory[size - 1]), 5);
            EXPECT_EQ(static_cast<int>(before[0]), 4);
            EXPECT_EQ(static_cast<int>(memory[size]), 0) << "bytes after the value were changed";
        }
}

}  // namespace
}  // namespace starling::rma
