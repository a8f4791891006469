// Collective calls as the profile records them: from an entry point's notification to the sums of a phase.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "base/current_function.h"
#include "profile/collectives.h"
#include "profile/phase.h"
#include "profile/traffic.h"

namespace starling::profile {
namespace {

const void* const kHere = reinterpret_cast<const void*>(&kSizeClasses);
const void* const kThere = reinterpret_cast<const void*>(&kSizeClassNames);

/// Acts as an MPI entry point and the layers below it.
int call(const void* site, const char* function, uint64_t communicator, std::vector<std::pair<const char*, uint64_t>> choices) {
    calling = function;
    const auto body = [&] {
        begin_watched(communicator, 4);
        for (const auto& [algorithm, bytes] : choices) note_choice(algorithm, bytes);
        return 7;
    };
    return run_watched(site, body);
}

std::vector<CollectiveSum> sums() {
    std::vector<CollectiveSum> all;
    each_collective([](const CollectiveSum& sum, void* all) { static_cast<std::vector<CollectiveSum>*>(all)->push_back(sum); },
                    &all);
    return all;
}

struct Heard {
    uint64_t site, communicator;
    uint32_t size;
    std::string function;
    bool operator==(const Heard&) const = default;
};
std::vector<Heard> heard;

// Once enabled, the recording of collective calls cannot be disabled, so one test covers all of it.
TEST(ProfileCollectives, CallsAreCountedPerCallSite) {
    EXPECT_FALSE(watching);
    listen_to_collectives([](uint64_t site, uint64_t communicator, uint32_t size, const char* function) {
        heard.push_back({site, communicator, size, function});
        if (communicator == 99) begin_phase("of the call");
    });
    EXPECT_TRUE(watching);
    EXPECT_EQ(call(kHere, "MPI_Bcast", 16, {}), 7);
    EXPECT_EQ(heard, (std::vector<Heard>{{reinterpret_cast<uint64_t>(kHere), 16, 4, "MPI_Bcast"}}));
    EXPECT_TRUE(sums().empty()) << "a listener alone does not enable counting";

    start_counting();
    call(kHere, "MPI_Allreduce", 16, {{"node", 8}});
    call(kHere, "MPI_Allreduce", 16, {{"node", 16}});
    ASSERT_EQ(sums().size(), 1u);
    EXPECT_EQ(sums()[0].calls, 2u);
    EXPECT_EQ(sums()[0].bytes, 24u);
    EXPECT_EQ(sums()[0].size_class, 0u);
    EXPECT_STREQ(sums()[0].algorithm, "node");
    call(kThere, "MPI_Allreduce", 16, {{"node", 8}});
    call(kHere, "MPI_Allreduce", 32, {{"node", 8}});
    call(kHere, "MPI_Allreduce", 16, {{"node", 65}});
    call(kHere, "MPI_Allreduce", 16, {{"ring", 8}});
    EXPECT_EQ(sums().size(), 5u) << "another place, communicator, size or algorithm is another row";

    const auto tried = [] {
        begin_watched(16, 4);
        note_choice("ring", 8, true);
        return 0;
    };
    calling = "MPI_Allreduce";
    run_watched(kHere, tried);
    EXPECT_EQ(sums().size(), 6u) << "an override is distinguished from the table's choice";
    for (const CollectiveSum& sum : sums()) {
        EXPECT_GE(sum.squares * static_cast<double>(sum.calls) * 1.01,
                  static_cast<double>(sum.ns) * static_cast<double>(sum.ns));
        EXPECT_EQ(sum.size, 4u);
    }

    clear_counts();
    EXPECT_TRUE(sums().empty());
    call(kHere, "MPI_Allreduce", 16, {{"two_level", 8}, {"ring", 4}});
    ASSERT_EQ(sums().size(), 1u);
    EXPECT_STREQ(sums()[0].algorithm, "two_level") << "an algorithm chosen by another algorithm does not count as the call's";

    clear_counts();
    calling = "MPI_Bcast";
    const auto prepared = [] {
        begin_watched(16, 4);
        note_choice("ring", 4);
        expect_choice();
        return 0;
    };
    run_watched(kHere, prepared);
    ASSERT_EQ(sums().size(), 1u);
    EXPECT_STREQ(sums()[0].algorithm, "none") << "what was chosen to prepare the call is not its own";

    clear_counts();
    calling = "MPI_Barrier";
    const auto refused = [] { return 5; };
    EXPECT_EQ(run_watched(kHere, refused), 5);
    EXPECT_TRUE(sums().empty()) << "its arguments were wrong: there was no call";
    EXPECT_EQ(watched, nullptr);

    call(kHere, "MPI_Barrier", 16, {});
    call(kHere, "MPI_Barrier", 99, {});
    EXPECT_EQ(phase(current_phase()).name, "of the call");
    ASSERT_EQ(sums().size(), 1u) << "a call that begins a phase belongs to it";
    EXPECT_EQ(sums()[0].communicator, 99u);
}

TEST(ProfileCollectives, FunctionsHaveKinds) {
    const std::pair<const char*, const char*> kinds[] = {{"MPI_Barrier", "barrier"},
                                                         {"MPI_Ibarrier", "ibarrier"},
                                                         {"MPI_Bcast", "bcast"},
                                                         {"MPI_Reduce", "reduce"},
                                                         {"MPI_Allreduce", "allreduce"},
                                                         {"MPI_Iallreduce", "iallreduce"},
                                                         {"MPI_Gatherv", "gather"},
                                                         {"MPI_Allgather", "allgather"},
                                                         {"MPI_Iallgatherv", "iallgather"},
                                                         {"MPI_Scatterv", "scatter"},
                                                         {"MPI_Alltoallw", "alltoall"},
                                                         {"MPI_Reduce_scatter_block", "reduce_scatter"},
                                                         {"MPI_Exscan", "scan"},
                                                         {"MPI_Ineighbor_alltoallv", "ineighbor"},
                                                         {"MPI_Send", "other"}};
    for (const auto& [function, kind] : kinds) EXPECT_STREQ(kind_of_function(function), kind) << function;
}

TEST(ProfileCollectives, SizesHaveClasses) {
    EXPECT_EQ(size_class_of(0), 0);
    EXPECT_EQ(size_class_of(64), 0);
    EXPECT_EQ(size_class_of(65), 1);
    EXPECT_EQ(size_class_of(256 << 10), 3);
    EXPECT_EQ(size_class_of(~uint64_t{0}), 4);
}

TEST(ProfileCollectives, ACallSiteIsNamedByItsModule) {
    const std::string name = name_of_site(reinterpret_cast<uint64_t>(kHere));
    EXPECT_EQ(name.find("unit_profile_collectives_test+0x"), 0u) << name;
    EXPECT_EQ(name_of_site(1), "?+0x1");
}

}  // namespace
}  // namespace starling::profile
