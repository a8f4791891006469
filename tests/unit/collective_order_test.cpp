// Collectives in every order of events (small cases), with failures, and several in sequence.
#include <gtest/gtest.h>

#include <string>
#include <type_traits>
#include <variant>

#include "base/error.h"
#include "collective/algorithms.h"
#include "collective/collective.h"
#include "collective/core/buffers.h"
#include "collective/core/frame_pool.h"
#include "collective/select.h"
#include "collective_data.h"
#include "collective_simulation.h"
#include "datatype/op.h"
#include "progress/coroutine_queue.h"
#include "progress/request.h"

namespace {

using namespace data;
using namespace simulation;
namespace collective = starling::collective;
using collective::Shares;

/// Data and tasks of all participants for one operation of each kind, each with two pairs of numbers per rank.
struct Everything {
    int n;
    std::vector<Values> own;
    std::vector<Values> in, out;
    explicit Everything(int size) : n(size) {
        std::mt19937 random(7);
        operand_shape = pairs()[0];
        const auto all = static_cast<size_t>(4 * n);
        for (int p = 0; p < n; ++p) {
            own.push_back(random_values(random, 4 * n));
            in.push_back(own.back());
            out.emplace_back(all);
        }
    }

    static constexpr int kOperations = 22, kFirstOfMulticast = 17;
    Task task(int which, int p, View v) {
        const Datatype& type = *pairs()[0]->type;
        uint32_t* from = in[static_cast<size_t>(p)].data();
        uint32_t* to = out[static_cast<size_t>(p)].data();
        const int last = v.n - 1;
        v.cast = v.exchange->cast(v.tag);
        v.turns = v.exchange->turns(v.tag);
        const collective::Blocks send(from, 2, type), receive(to, 2, type);
        switch (which) {
            case 0:
                return collective::barrier_dissemination(v);
            case 1:
                return collective::barrier_tree(v);
            case 2:
                return collective::bcast_binomial(v, from, 2, type, last);
            case 3:
                return collective::bcast_scatter_allgather(v, from, 2, type, last);
            case 4:
                return collective::bcast_chain(v, from, 2, type, last);
            case 5:
                return collective::reduce_binomial(v, from, to, 2, type, *compose().op, last);
            case 6:
                return collective::reduce_rabenseifner(v, from, to, 2, type, *add().op, last);
            case 7:
                return collective::allreduce_recursive_doubling(v, from, to, 2, type, *compose().op);
            case 8:
                return collective::allreduce_ring(v, from, to, 2, type, *add().op);
            case 9:
                return collective::gather_binomial(v, from, 2, type, receive, last);
            case 10:
                return collective::scatter_binomial(v, send, to, 2, type, last);
            case 11:
                return collective::allgather(v, from, 2, type, receive);
            case 12:
                return collective::allgather_bruck(v, receive);
            case 13:
                return collective::alltoall_bruck(v, send, receive);
            case 14:
                return collective::alltoall_linear(v, send, receive);
            case 15:
                return collective::reduce_scatter_halving(v, from, to, Shares(2), type, *add().op);
            case 16:
                return collective::scan_recursive_doubling(v, from, to, 2, type, *compose().op, false);
            case kFirstOfMulticast:
                return collective::bcast_multicast(v, from, 2, type, last);
            case 18:
                return collective::barrier_multicast(v);
            case 19:
                return collective::allreduce_multicast(v, from, to, 2, type, *compose().op);
            case 20:
                return collective::allgather_multicast_turns(v, receive);
            default:
                return collective::allreduce_multicast_turns(v, from, to, 2, type, *add().op);
        }
    }
    /// Places each participant on a separate host, and sends every second message to the group.
    static void prepare(World& world, int n) {
        std::vector<int> hosts(static_cast<size_t>(n));
        for (size_t i = 0; i < hosts.size(); ++i) hosts[i] = static_cast<int>(i);
        world.spread(hosts);
        world.to_group = 1;
    }
};

TEST(CollectiveOrder, EveryOrderOfEventsEnds) {
    // Three participants: all orders of their starts and of all deliveries, eager or not, up to a limit of runs.
    for (int which = 0; which < Everything::kOperations; ++which) {
        SCOPED_TRACE("operation " + std::to_string(which));
        Chooser chooser;
        std::vector<Values> first;
        int runs = 0;
        int64_t grouped = 0;
        do {
            Everything state(3);
            World world(chooser, 3);
            Everything::prepare(world, 3);
            const auto errors = world.run([&](int p, View v) { return state.task(which, p, v); });
            ASSERT_EQ(errors, (std::vector<int>{0, 0, 0}));
            ASSERT_EQ(world.left_over(), 0u);
            grouped += world.grouped;
            std::vector<Values> result = state.out;
            result.insert(result.end(), state.in.begin(), state.in.end());
            if (first.empty()) first = result;
            ASSERT_EQ(result, first) << "the result depends on the order of messages";
        } while (chooser.next() && ++runs < 3000);
        EXPECT_GT(runs, 5);
        EXPECT_EQ(grouped > 0, which >= Everything::kFirstOfMulticast);
    }
}

TEST(CollectiveOrder, MessagesOfConsecutiveOperationsDoNotMix) {
    for (uint32_t seed = 0; seed < 300; ++seed) {
        Chooser chooser(seed);
        const int n = 2 + static_cast<int>(seed % 6);
        World world(chooser, n);
        // Each operation sums the results of the one before, so that a message matched by the wrong operation changes the final result.
        std::vector<uint32_t> values(static_cast<size_t>(n));
        std::vector<uint32_t> sums(static_cast<size_t>(n));
        std::vector<int> done(static_cast<size_t>(n));
        for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<uint32_t>(i + 1);
        const auto errors = world.run(
            [&](int p, View v) {
                const auto i = static_cast<size_t>(p);
                if (done[i]++ > 0) values[i] = sums[i] + static_cast<uint32_t>(i);
                return collective::allreduce_recursive_doubling(v, &values[i], &sums[i], 1, *single().type, *sum().op);
            },
            4);
        ASSERT_EQ(errors, std::vector<int>(static_cast<size_t>(n), 0));
        uint32_t expected = static_cast<uint32_t>(n * (n + 1) / 2);
        const auto ranks = static_cast<uint32_t>(n);
        for (int i = 1; i < 4; ++i) expected = expected * ranks + ranks * (ranks - 1) / 2;
        for (const uint32_t s : sums) ASSERT_EQ(s, expected) << "seed " << seed;
    }
}

TEST(CollectiveOrder, ADeadParticipantCausesNoDeadlock) {
    const size_t frames = collective::live_frames();
    for (int which = 0; which < Everything::kOperations; ++which) {
        for (int n = 2; n <= 9; ++n) {
            for (int dead = 0; dead < n; ++dead) {
                SCOPED_TRACE("operation " + std::to_string(which) + ", " + std::to_string(dead) + " of " + std::to_string(n) +
                             " dead");
                Chooser chooser(static_cast<uint64_t>(n * 100 + dead));
                World world(chooser, n);
                world.eager_limit = chooser.pick(2) * 1000;
                world.dead.insert(dead);
                Everything::prepare(world, n);
                Everything state(n);
                const auto errors = world.run([&](int p, View v) { return state.task(which, p, v); });
                ASSERT_NE(errors, std::vector<int>{-1}) << "deadlock";
                int failed = 0;
                for (const int error : errors) failed += error != MPI_SUCCESS;
                // A broadcast to the group can succeed without the dead participant.
                EXPECT_TRUE(failed > 0 || which == Everything::kFirstOfMulticast);
            }
        }
    }
    EXPECT_EQ(collective::live_frames(), frames);
}

// A dead root leaves its message incomplete: some participants have all of it, by the group or by the tree, and others nothing.
TEST(CollectiveOrder, ARootThatDiesWhileSendingCausesNoDeadlock) {
    const size_t frames = collective::live_frames();
    for (uint32_t seed = 0; seed < 4000; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        Chooser chooser(seed);
        const int n = 2 + static_cast<int>(chooser.pick(8)), root = static_cast<int>(chooser.pick(static_cast<size_t>(n)));
        World world(chooser, n);
        Everything::prepare(world, n);
        world.eager_limit = chooser.pick(2) * 1000;
        world.dead.insert(root);
        if (chooser.pick(3) == 0) world.dead.insert(static_cast<int>(chooser.pick(static_cast<size_t>(n))));
        std::set<int>& reached = chooser.pick(2) ? world.reached_by_group : world.reached_by_message;
        for (int i = 0; i < n; ++i)
            if (chooser.pick(2)) reached.insert(i);
        const int64_t bytes = chooser.pick(2) ? 100 : 300'000;
        std::vector<std::vector<std::byte>> data(static_cast<size_t>(n), std::vector<std::byte>(static_cast<size_t>(bytes)));
        const auto errors = world.run([&](int p, View v) {
            v.cast = v.exchange->cast(v.tag);
            return collective::bcast_multicast(v, data[static_cast<size_t>(p)].data(), bytes, starling::collective::byte_type(),
                                               root);
        });
        ASSERT_NE(errors, std::vector<int>{-1}) << "deadlock";
    }
    EXPECT_EQ(collective::live_frames(), frames);
}

TEST(CollectiveOrder, ALongMessageNotSentToTheMulticastGroupTravelsInSegments) {
    for (uint32_t seed = 0; seed < 60; ++seed) {
        Chooser chooser(seed);
        const int n = 2 + static_cast<int>(seed % 8), root = static_cast<int>(seed) % n;
        World world(chooser, n);
        Everything::prepare(world, n);
        world.to_group = seed % 3 ? 0 : 1;
        const int64_t bytes = 128 * 1024 + static_cast<int64_t>(chooser.pick(300'000));
        std::vector<std::vector<std::byte>> data(static_cast<size_t>(n), std::vector<std::byte>(static_cast<size_t>(bytes)));
        auto& sent = data[static_cast<size_t>(root)];
        for (size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<std::byte>(i * 7 + i / 256 + seed);
        const auto errors = world.run([&](int p, View v) {
            v.cast = v.exchange->cast(v.tag);
            return collective::bcast_multicast(v, data[static_cast<size_t>(p)].data(), bytes, starling::collective::byte_type(),
                                               root);
        });
        ASSERT_EQ(errors, std::vector<int>(static_cast<size_t>(n), 0));
        for (const auto& one : data) ASSERT_EQ(one, sent) << "seed " << seed;
        ASSERT_EQ(world.left_over(), 0u);
    }
}

/// Runs an allgather by turns with random parts, some of them empty. Returns its errors; `data` has the parts at each participant.
std::vector<int> take_turns(World& world, int n, const std::vector<int64_t>& counts, std::vector<std::vector<uint32_t>>& data,
                            int operations = 1) {
    std::vector<int64_t> offsets(counts.size());
    for (size_t i = 1; i < counts.size(); ++i) offsets[i] = offsets[i - 1] + counts[i - 1];
    data.assign(static_cast<size_t>(n), std::vector<uint32_t>(static_cast<size_t>(offsets.back() + counts.back()) + 1));
    for (size_t p = 0; p < counts.size(); ++p)
        for (int64_t i = 0; i < counts[p]; ++i)
            data[p][static_cast<size_t>(offsets[p] + i)] = static_cast<uint32_t>(1000 * p + static_cast<size_t>(i) + 1);
    const Datatype& type = starling::datatype::predefined(MPI_UINT32_T);
    return world.run([&](int p, View v) {
        v.turns = v.exchange->turns(v.tag);
        return collective::allgather_multicast_turns(v, {data[static_cast<size_t>(p)].data(), starling::Counts(counts.data()),
                                                         starling::Counts(offsets.data()), type});
    }, operations);
}

TEST(CollectiveOrder, EachMemberOfAChainMulticastsItsPartAfterTheOneBeforeIt) {
    for (uint32_t seed = 0; seed < 200; ++seed) {
        Chooser chooser(seed);
        const int n = 3 + static_cast<int>(seed % 9);
        World world(chooser, n);
        Everything::prepare(world, n);
        world.to_group = 2;
        std::vector<int64_t> counts(static_cast<size_t>(n));
        for (int64_t& count : counts) count = static_cast<int64_t>(chooser.pick(4)) * 50;
        std::vector<std::vector<uint32_t>> data;
        ASSERT_EQ(take_turns(world, n, counts, data), std::vector<int>(static_cast<size_t>(n), 0));
        for (const auto& one : data) ASSERT_EQ(one, data[0]);
        ASSERT_EQ(world.left_over(), 0u);
        // The first multicast is the decision of participant 0.
        std::vector<int> expected[2], sent[2];
        for (int chain = 0; chain < 2; ++chain) {
            const int first = chain * n / 2, end = (chain + 1) * n / 2;
            for (int i = first + 1; i <= end; ++i) {
                const int member = i == end ? first : i;
                if (counts[static_cast<size_t>(member)] > 0) expected[chain].push_back(member);
            }
        }
        for (size_t i = 1; i < world.group_senders.size(); ++i)
            sent[world.group_senders[i] >= n / 2].push_back(world.group_senders[i]);
        for (int chain = 0; chain < 2; ++chain) ASSERT_EQ(sent[chain], expected[chain]) << "seed " << seed;
    }
}

// Without a ready group 10 calls are decided, each by 3 reports and 3 messages of the decision. The tenth decision holds for one more call.
// Each ring has 12 messages.
TEST(CollectiveOrder, AFewDecisionsSufficeWhileTheGroupIsNotReady) {
    Chooser chooser(1);
    World world(chooser, 4);
    Everything::prepare(world, 4);
    world.to_group = 0;
    std::vector<std::vector<uint32_t>> data;
    ASSERT_EQ(take_turns(world, 4, {5, 5, 5, 5}, data, 11), std::vector<int>(4, 0));
    for (const auto& one : data) ASSERT_EQ(one, data[0]);
    EXPECT_EQ(world.delivered(), 11 * 12 + 10 * 6);
    EXPECT_EQ(world.left_over(), 0u);
}

// The group is lost amid a call: some members multicast their parts, others send them by messages.
TEST(CollectiveOrder, APartThatCannotBeMulticastIsSentByMessages) {
    for (uint32_t seed = 0; seed < 300; ++seed) {
        Chooser chooser(seed);
        const int n = 2 + static_cast<int>(seed % 9);
        World world(chooser, n);
        Everything::prepare(world, n);
        world.eager_limit = chooser.pick(2) * 1000;
        std::vector<int64_t> counts(static_cast<size_t>(n));
        for (int64_t& count : counts) count = static_cast<int64_t>(chooser.pick(3)) * 60;
        std::vector<std::vector<uint32_t>> data;
        ASSERT_EQ(take_turns(world, n, counts, data), std::vector<int>(static_cast<size_t>(n), 0));
        for (const auto& one : data) ASSERT_EQ(one, data[0]) << "seed " << seed;
        ASSERT_EQ(world.left_over(), 0u);
    }
}

TEST(CollectiveOrder, ATruncatedMessageEndsTheOperationWithAnError) {
    for (int which = 2; which < Everything::kOperations; ++which) {
        for (int n = 2; n <= 6; ++n) {
            for (int64_t at = 0;; ++at) {
                SCOPED_TRACE("operation " + std::to_string(which) + ", message " + std::to_string(at) + " of " +
                             std::to_string(n) + " ranks");
                Chooser chooser(static_cast<uint64_t>(n * 100 + at));
                World world(chooser, n);
                world.truncated = at;
                Everything::prepare(world, n);
                Everything state(n);
                const auto errors = world.run([&](int p, View v) { return state.task(which, p, v); });
                ASSERT_NE(errors, std::vector<int>{-1}) << "deadlock";
                if (at >= world.delivered()) break;
                // The receiver of the overlong message and all participants that depend on its data return MPI_ERR_TRUNCATE.
                int truncated = 0;
                for (const int error : errors) {
                    truncated += error == MPI_ERR_TRUNCATE;
                    EXPECT_TRUE(error == MPI_SUCCESS || error == MPI_ERR_TRUNCATE) << error;
                }
                EXPECT_GE(truncated, 1);
            }
        }
    }
}

/// A row of the algorithm table, called with its kind's signature.
struct RowCall {
    Everything& all;
    int p;
    View v;
    const Datatype& type = *pairs()[0]->type;
    uint32_t* from = all.in[static_cast<size_t>(p)].data();
    uint32_t* to = all.out[static_cast<size_t>(p)].data();
    collective::Blocks send{from, 2, type}, receive{to, 2, type};

    template <class Signature>
    Task operator()(Signature* row) const {
        namespace signature = collective::signature;
        if constexpr (std::is_same_v<Signature, signature::barrier>)
            return row(v);
        else if constexpr (std::is_same_v<Signature, signature::bcast>)
            return row(v, from, 2, type, v.n - 1);
        else if constexpr (std::is_same_v<Signature, signature::reduce>)
            return row(v, from, to, 2, type, *add().op, v.n - 1);
        else if constexpr (std::is_same_v<Signature, signature::allreduce>)
            return row(v, from, to, 2, type, *add().op);
        else if constexpr (std::is_same_v<Signature, signature::gather>)
            return row(v, from, 2, type, receive, v.n - 1);
        else if constexpr (std::is_same_v<Signature, signature::scatter>)
            return row(v, send, to, 2, type, v.n - 1);
        else if constexpr (std::is_same_v<Signature, signature::allgather>)
            return row(v, receive);
        else if constexpr (std::is_same_v<Signature, signature::alltoall>)
            return row(v, send, receive);
        else if constexpr (std::is_same_v<Signature, signature::reduce_scatter>)
            return row(v, from, to, Shares(2), type, *add().op);
        else
            return row(v, from, to, 2, type, *add().op, false);
    }
};

/// Runs a row of the algorithm table while all messages from number `message` on fail. Returns whether any message failed.
bool fail_from(const collective::Algorithm& row, int64_t message, uint64_t seed) {
    constexpr int n = 4;
    Chooser chooser(seed);
    World world(chooser, n);
    world.eager_limit = seed % 2 * 1000;
    world.fails_from = message;
    Everything state(n);
    if (row.needs & (collective::kMulticast | collective::kTurns)) Everything::prepare(world, n);
    if (row.needs & collective::kHosts) world.spread({0, 0, 1, 1});
    const auto errors = world.run([&](int p, View v) {
        v.cast = v.exchange->cast(v.tag);
        v.turns = v.exchange->turns(v.tag);
        return std::visit(RowCall{state, p, v}, row.function);
    });
    EXPECT_NE(errors, std::vector<int>{-1}) << "deadlock";
    for (int p = 0; p < n && errors.size() == n; ++p)
        if (const int error = errors[static_cast<size_t>(p)]) { EXPECT_EQ(world.sentences[p], World::sentence_of(error)); }
    return message < world.delivered();
}

// Each participant returns the first error in its part of the operation, with that error's text, whatever else fails here or on other
// participants.
TEST(CollectiveOrder, EachAlgorithmReturnsItsFirstErrorWithThatErrorsText) {
    for (int kind = 0; kind < collective::kKinds; ++kind) {
        for (int index = 0; const auto* row = collective::algorithm_of(static_cast<collective::CollectiveKind>(kind), index);
             ++index) {
            // Algorithms in shared memory have no requests that could fail.
            if (row->needs & collective::kSharedMemory) continue;
            for (uint64_t seed = 0; seed < 10; ++seed) {
                SCOPED_TRACE(std::string(collective::name(row->kind)) + " " + std::string(row->name) + ", seed " +
                             std::to_string(seed));
                EXPECT_TRUE(fail_from(*row, 0, seed));
                for (int64_t message = 1; fail_from(*row, message, seed); ++message) {}
            }
        }
    }
}

TEST(CollectiveOrder, AFailureReachesAllDependentParticipants) {
    // A chain: the message that rank 1 could not receive does not reach ranks 2 and 3 either, and both return the error.
    Chooser chooser(3);
    World world(chooser, 4);
    world.truncated = 0;
    world.eager_limit = 0;
    std::vector<uint32_t> values(4);
    const auto errors = world.run(
        [&](int p, View v) { return collective::bcast_chain(v, &values[static_cast<size_t>(p)], 1, *single().type, 0); });
    EXPECT_EQ(errors[0], MPI_SUCCESS);
    EXPECT_EQ(errors[1], MPI_ERR_TRUNCATE);
    EXPECT_EQ(errors[2], MPI_ERR_TRUNCATE);
    EXPECT_EQ(errors[3], MPI_ERR_TRUNCATE);
}

TEST(CollectiveSelect, ScansOfFewRanksOfAHostAreAChain) {
    using collective::CallParameters;
    using collective::CollectiveKind;
    CallParameters scan{CollectiveKind::scan, 4, 64 << 10};
    EXPECT_EQ(collective::select(scan).name, "linear");
    scan.network = true;
    EXPECT_EQ(collective::select(scan).name, "recursive_doubling");
    EXPECT_EQ(collective::select(CallParameters{CollectiveKind::scan, 16, 8}).name, "recursive_doubling");
}

TEST(CollectiveSelect, ExchangesOfTwoRanksOfAHostArePairwise) {
    using collective::CallParameters;
    using collective::CollectiveKind;
    CallParameters exchange{CollectiveKind::alltoall, 2, 32 << 10};
    EXPECT_EQ(collective::select(exchange).name, "pairwise");
    exchange.network = true;
    EXPECT_EQ(collective::select(exchange).name, "linear");
    EXPECT_EQ(collective::select(CallParameters{CollectiveKind::alltoall, 4, 32 << 10}).name, "linear");
    EXPECT_EQ(collective::select(CallParameters{CollectiveKind::alltoall, 4, 33 << 10}).name, "pairwise");
}

TEST(CollectiveSelect, OverridesAreCheckedAndUsedOnlyIfSuitable) {
    using collective::CallParameters;
    using collective::CollectiveKind;
    EXPECT_EQ(collective::set_override(CollectiveKind::allreduce, "ring"), MPI_SUCCESS);
    EXPECT_EQ(collective::select(CallParameters{CollectiveKind::allreduce, 4, 8}).name, "ring");
    CallParameters ordered{CollectiveKind::allreduce, 4, 1 << 20};
    ordered.commutative = false;
    EXPECT_EQ(collective::select(ordered).name, "recursive_doubling");
    EXPECT_EQ(collective::set_override(CollectiveKind::allreduce, "bruck"), MPI_ERR_ARG);
    EXPECT_NE(starling::failure_text().find("recursive_doubling"), std::string_view::npos);
    EXPECT_EQ(collective::set_override(CollectiveKind::allreduce, "rign"), MPI_ERR_ARG);
    EXPECT_NE(collective::describe_selection().find("overridden: ring"), std::string::npos);
    EXPECT_EQ(collective::set_override(CollectiveKind::allreduce, "auto"), MPI_SUCCESS);
    EXPECT_NE(collective::select(CallParameters{CollectiveKind::allreduce, 4, 8}).name, "ring");
}

// If several receives fail, the first one's error text is kept.
TEST(Errors, TheFirstErrorTextIsKept) {
    starling::message::ReceiveRequest requests[2];
    const char* const sentences[] = {"the first", "the second"};
    for (int i = 0; i < 2; ++i) {
        requests[i].outcome.error = starling::fail(MPI_ERR_OTHER, "%s", sentences[i]);
        starling::progress::save_failure(requests[i]);
    }
    View view{};
    for (const auto& request : requests) view.finish(request, 8);
    const int told = view.error;
    EXPECT_EQ(told, MPI_ERR_OTHER);
    EXPECT_EQ(starling::failure_text(), "the first");
    starling::clear_failure();
}

}  // namespace
