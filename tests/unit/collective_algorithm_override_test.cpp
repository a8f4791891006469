// Overrides of the table's choice of algorithm: rotation through the alternatives, or a plan.
#include "collective/algorithm_override.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/error.h"
#include "mpi.h"

namespace starling::collective {
namespace {

CallParameters call(CollectiveKind kind, int n, uint64_t bytes, bool node = false) {
    CallParameters call{kind, n, bytes};
    call.node = call.pieces = node;
    return call;
}

TEST(AlgorithmOverride, AlternativesRotateStartingWithTheTablesChoice) {
    const CallParameters small = call(CollectiveKind::allreduce, 4, 8, true);
    std::map<std::string_view, int> counts;
    for (uint32_t turn = 0; turn < 6 * kCallsInARow; ++turn) {
        const Algorithm* const algorithm = alternative(small, turn);
        ASSERT_TRUE(algorithm);
        EXPECT_TRUE(can_serve(*algorithm, small));
        EXPECT_EQ(turn < kCallsInARow, algorithm == &select(small));
        ++counts[algorithm->name];
    }
    EXPECT_EQ(counts.size(), 6u) << "the node stage, and all but two_level, which needs several hosts";
    for (const auto& [name, times] : counts) EXPECT_EQ(times, static_cast<int>(kCallsInARow)) << name;
}

TEST(AlgorithmOverride, UnsuitableAlgorithmsAreSkipped) {
    CallParameters ordered = call(CollectiveKind::allreduce, 6, 8);
    ordered.commutative = false;
    CallParameters uneven = call(CollectiveKind::gather, 6, 8);
    uneven.uniform = false;
    std::set<std::string_view> names;
    for (uint32_t turn = 0; turn < 40; ++turn) names.insert(alternative(ordered, turn)->name);
    EXPECT_EQ(names, (std::set<std::string_view>{"recursive_doubling", "reduce_bcast", "linear"}));
    EXPECT_EQ(alternative(uneven, 0), nullptr) << "no other algorithm supports this call";
}

TEST(AlgorithmOverride, APlanChoosesByOperationSizeAndProcesses) {
    ASSERT_EQ(read_planned("allreduce/<=64/4=ring;bcast/>256K/2=chain"), MPI_SUCCESS);
    ASSERT_TRUE(planned(call(CollectiveKind::allreduce, 4, 64)));
    EXPECT_EQ(planned(call(CollectiveKind::allreduce, 4, 64))->name, "ring");
    EXPECT_EQ(planned(call(CollectiveKind::bcast, 2, 1 << 20))->name, "chain");
    EXPECT_EQ(planned(call(CollectiveKind::allreduce, 4, 65)), nullptr);
    EXPECT_EQ(planned(call(CollectiveKind::allreduce, 5, 64)), nullptr);
    EXPECT_EQ(planned(call(CollectiveKind::reduce, 4, 64)), nullptr);
    EXPECT_EQ(read_planned(""), MPI_SUCCESS);
    EXPECT_EQ(planned(call(CollectiveKind::allreduce, 4, 64)), nullptr);
}

TEST(AlgorithmOverride, MalformedPlansAreRefused) {
    for (const char* text : {"x", "allreduce", "allreduce/<=64/4", "alldance/<=64/4=ring", "allreduce/<=65/4=ring",
                             "allreduce/<=64/=ring", "allreduce/<=64/4x=ring", "allreduce/<=64/1=ring",
                             "allreduce/<=64/4=rings", "=/", "allreduce=//", "allreduce/<=64/4=ring;;"}) {
        EXPECT_EQ(read_planned(text), MPI_ERR_ARG) << text;
        clear_failure();
    }
}

}  // namespace
}  // namespace starling::collective
