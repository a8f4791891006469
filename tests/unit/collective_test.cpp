// Every collective algorithm against a plain reference: random sizes, types, roots and orders of delivery.
#include "collective/collective.h"

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "collective/select.h"
#include "collective_data.h"
#include "collective_simulation.h"
#include "datatype/datatype.h"
#include "progress/coroutine_queue.h"
#include "progress/request.h"

namespace {

using namespace data;
using namespace simulation;
namespace collective = starling::collective;
using collective::CollectiveKind;
using collective::Shares;

/// One random case: number of participants, sizes of their groups, counts and types.
struct Case {
    std::mt19937 random;
    Chooser chooser;
    World world;
    int n, first;
    int64_t count;
    Case(uint32_t seed, int size, int first_group)
        : random(seed),
          chooser(seed),
          world(chooser, size, first_group),
          n(size),
          first(first_group),
          count(static_cast<int64_t>(random() % 4 == 0 ? random() % 2 : random() % 60)) {
        world.eager_limit = random() % 3 * 50;
        if (coin()) spread();
        world.to_group = below(4) - 1;
    }
    /// Places the participants on up to four hosts, or each on a separate one; consecutively or at random.
    void spread() {
        const int hosts = below(4) == 0 ? n : 1 + below(4);
        const bool consecutive = coin();
        std::vector<int> host_of;
        for (int i = 0; i < n; ++i) host_of.push_back(consecutive ? i * hosts / n : below(hosts));
        world.spread(host_of);
    }
    bool inter() const { return first != 0; }
    int below(int64_t limit) { return static_cast<int>(random() % static_cast<uint64_t>(limit)); }
    bool coin() { return random() % 2 == 0; }
    const Shape& pair_shape() { return *pairs()[random() % pairs().size()]; }
    bool low(int participant) const { return participant < first; }
    /// Returns the size of a participant's own group; other_size() returns that of the remote group.
    int side_size(int p) const { return !inter() ? n : low(p) ? first : n - first; }
    int other_size(int p) const { return !inter() ? n : n - side_size(p); }
    int side_rank(int p) const { return !inter() || low(p) ? p : p - first; }
    /// Returns the participant with rank r in the group that p's roots and blocks refer to.
    int other(int p, int r) const { return !inter() || !low(p) ? r : first + r; }

    void run(const std::function<Task(int, View)>& make) {
        const std::vector<int> errors = world.run(make);
        ASSERT_NE(errors, std::vector<int>{-1}) << "deadlock";
        for (const int error : errors) ASSERT_EQ(error, MPI_SUCCESS) << starling::failure_text();
        EXPECT_EQ(world.left_over(), 0u);
    }
    /// Runs the case and compares every participant's memory with the expected one.
    template <class Buffers>
    void run_and_compare(const std::function<Task(int, View)>& make, const Buffers& got, const Buffers& expected) {
        run(make);
        for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(got[i].memory == expected[i].memory) << "participant " << i;
    }
};

void test_barrier(Case& c) {
    std::vector<bool> entered(static_cast<size_t>(c.n));
    const auto checked = [&](View v) -> Task {
        entered[static_cast<size_t>(c.world.exchange(v.base + v.me).rank)] = true;
        const Task barrier = c.inter() ? collective::inter::barrier(v) : collective::barrier(v);
        v.note(co_await barrier);
        for (int p = 0; p < c.n; ++p) EXPECT_TRUE(entered[static_cast<size_t>(p)] || (c.inter() && c.low(p) == c.low(v.me)));
        co_return v.error;
    };
    c.run([&](int, View v) { return checked(v); });
}

void test_bcast(Case& c) {
    if (c.below(8) == 0) c.count = 10000 + c.below(10000);  // long data, so that a chain has several segments
    const int root = c.below(c.n);
    const Values values = random_values(c.random, 2 * c.count);
    std::vector<Buffer> got, expected;
    for (int p = 0; p < c.n; ++p) {
        got.emplace_back(c.pair_shape(), c.count);
        if (p == root) got.back().put(values);
        expected.push_back(got.back());
        if (!c.inter() || c.low(p) != c.low(root)) expected.back().put(values);
    }
    c.run_and_compare(
        [&](int p, View v) {
            Buffer& b = got[static_cast<size_t>(p)];
            if (!c.inter()) return collective::bcast(v, b.address(), b.count, *b.shape->type, root);
            const int given = c.low(p) != c.low(root) ? c.side_rank(root) : p == root ? MPI_ROOT : MPI_PROC_NULL;
            return collective::inter::bcast(v, b.address(), b.count, *b.shape->type, given);
        },
        got, expected);
}

/// Operands and results of a reduction.
struct Reduction {
    const Operation& operation;
    const Shape& shape;
    std::vector<Values> operands;
    Reduction(Case& c, int64_t count)
        : operation(*std::vector{&sum(), &compose(), &add()}[c.random() % 3]),
          shape(operation.on_values ? c.pair_shape() : single()) {
        operand_shape = &shape;
        for (int p = 0; p < c.n; ++p) operands.push_back(random_values(c.random, count * shape.numbers()));
    }
    /// Returns the reduction over participants [first, last).
    Values of(int first, int last) const {
        Values value = operands[static_cast<size_t>(first)];
        for (int p = first + 1; p < last; ++p) value = operation.combine(value, operands[static_cast<size_t>(p)]);
        return value;
    }
    /// Returns the reduction over the group whose data the participant receives.
    Values for_participant(const Case& c, int p) const {
        if (!c.inter()) return of(0, c.n);
        return c.low(p) ? of(c.first, c.n) : of(0, c.first);
    }
};

void test_reduce(Case& c) {
    const Reduction r(c, c.count);
    const int root = c.below(c.n);
    const bool in_place = !c.inter() && c.coin();
    std::vector<Buffer> send, got, expected;
    for (int p = 0; p < c.n; ++p) {
        const auto i = static_cast<size_t>(p);
        send.emplace_back(r.shape, c.count);
        send.back().put(r.operands[i]);
        got.emplace_back(r.shape, c.count);
        if (in_place && p == root) got.back().put(r.operands[i]);
        expected.push_back(got.back());
        if (p == root) expected.back().put(r.for_participant(c, p));
    }
    const std::vector<Buffer> sent = send;
    c.run_and_compare(
        [&](int p, View v) {
            const auto i = static_cast<size_t>(p);
            const void* input = in_place && p == root ? MPI_IN_PLACE : send[i].address();
            if (!c.inter())
                return collective::reduce(v, input, got[i].address(), c.count, *r.shape.type, *r.operation.op, root);
            const int given = c.low(p) != c.low(root) ? c.side_rank(root) : p == root ? MPI_ROOT : MPI_PROC_NULL;
            return collective::inter::reduce(v, input, got[i].address(), c.count, *r.shape.type, *r.operation.op, given);
        },
        got, expected);
    for (size_t i = 0; i < send.size(); ++i) EXPECT_TRUE(send[i].memory == sent[i].memory) << "input changed";
}

void test_allreduce(Case& c) {
    const Reduction r(c, c.count);
    const bool in_place = !c.inter() && c.coin();
    std::vector<Buffer> send, got, expected;
    for (int p = 0; p < c.n; ++p) {
        const auto i = static_cast<size_t>(p);
        send.emplace_back(r.shape, c.count);
        send.back().put(r.operands[i]);
        got.emplace_back(r.shape, c.count);
        if (in_place) got.back().put(r.operands[i]);
        expected.push_back(got.back());
        expected.back().put(r.for_participant(c, p));
    }
    c.run_and_compare(
        [&](int p, View v) {
            const auto i = static_cast<size_t>(p);
            const void* input = in_place ? MPI_IN_PLACE : send[i].address();
            const auto& function = c.inter() ? collective::inter::allreduce : collective::allreduce;
            return function(v, input, got[i].address(), c.count, *r.shape.type, *r.operation.op);
        },
        got, expected);
}

void test_scan(Case& c) {
    if (c.inter()) return;
    const Reduction r(c, c.count);
    const bool in_place = c.coin(), exclusive = c.coin();
    std::vector<Buffer> send, got, expected;
    for (int p = 0; p < c.n; ++p) {
        const auto i = static_cast<size_t>(p);
        send.emplace_back(r.shape, c.count);
        send.back().put(r.operands[i]);
        got.emplace_back(r.shape, c.count);
        if (in_place) got.back().put(r.operands[i]);
        expected.push_back(got.back());
        if (!exclusive || p > 0) expected.back().put(r.of(0, exclusive ? p : p + 1));
    }
    c.run_and_compare(
        [&](int p, View v) {
            const auto i = static_cast<size_t>(p);
            return collective::scan(v, in_place ? MPI_IN_PLACE : send[i].address(), got[i].address(), c.count, *r.shape.type,
                                    *r.operation.op, exclusive);
        },
        got, expected);
}

void test_reduce_scatter(Case& c) {
    // shares[p]: number of elements that each member of p's group receives. In both groups of an inter-communicator the sums are equal.
    const bool block = c.coin();
    const int64_t total = c.inter() ? c.count * c.first * (c.n - c.first) : block ? c.count * c.n : c.count;
    std::vector<std::vector<int64_t>> shares;
    for (int p = 0; p < c.n; ++p) {
        const int size = c.side_size(p);
        if (p > 0 && c.side_rank(p) > 0) {
            shares.push_back(shares.back());
            continue;
        }
        std::vector<int64_t> side(static_cast<size_t>(size), total / size);
        if (!block) {
            std::fill(side.begin(), side.end(), 0);
            for (int64_t i = 0; i < total; ++i) ++side[static_cast<size_t>(c.below(size))];
        }
        shares.push_back(side);
    }
    const Reduction r(c, total);
    const bool in_place = !c.inter() && c.coin();
    std::vector<Buffer> send, got, expected;
    for (int p = 0; p < c.n; ++p) {
        const auto i = static_cast<size_t>(p);
        send.emplace_back(r.shape, total);
        send.back().put(r.operands[i]);
        got.emplace_back(r.shape, in_place ? total : shares[i][static_cast<size_t>(c.side_rank(p))]);
        if (in_place) got.back().put(r.operands[i]);
        expected.push_back(got.back());
        const Values all = r.for_participant(c, p);
        int64_t begin = 0;
        for (int q = 0; q < c.side_rank(p); ++q) begin += shares[i][static_cast<size_t>(q)];
        begin *= r.shape.numbers();
        const int64_t end = begin + shares[i][static_cast<size_t>(c.side_rank(p))] * r.shape.numbers();
        expected.back().put(Values(all.begin() + begin, all.begin() + end));
    }
    c.run(([&](int p, View v) {
        const auto i = static_cast<size_t>(p);
        const void* input = in_place ? MPI_IN_PLACE : send[i].address();
        const auto& function = c.inter() ? collective::inter::reduce_scatter : collective::reduce_scatter;
        const Shares mine = block ? Shares(shares[i][0]) : Shares(Counts(shares[i].data()));
        return function(v, input, got[i].address(), mine, *r.shape.type, *r.operation.op);
    }));
    // In place, MPI leaves the buffer after a rank's own share undefined. So only the share itself is compared.
    for (size_t i = 0; i < got.size(); ++i) {
        const auto p = static_cast<int>(i);
        const int64_t mine = shares[i][static_cast<size_t>(c.side_rank(p))] * r.shape.extent;
        EXPECT_EQ(std::memcmp(got[i].memory.at(16), expected[i].memory.at(16), static_cast<size_t>(mine + 16)), 0);
        EXPECT_TRUE(in_place || got[i].memory == expected[i].memory) << "participant " << p;
    }
}

std::vector<int64_t> block_counts(Case& c, bool uniform, int n) {
    std::vector<int64_t> counts(static_cast<size_t>(n), c.count);
    if (!uniform)
        for (auto& count : counts) count = c.below(20);
    return counts;
}

std::vector<const Shape*> same_shape(Case& c, int n) {
    return std::vector<const Shape*>(static_cast<size_t>(n), &c.pair_shape());
}

/// Gather and scatter: a buffer of blocks at the root, and one block at each participant.
void test_gather_or_scatter(Case& c, bool gather) {
    const int root = c.below(c.n);
    const bool uniform = c.coin(), in_place = !c.inter() && c.coin();
    const int peers = c.other_size(root);
    const std::vector<int64_t> counts = block_counts(c, uniform, peers);
    BlockBuffer blocks(c.random, uniform ? Form::uniform : Form::counted, counts, same_shape(c, peers));
    BlockBuffer expected_blocks = blocks;
    std::vector<Buffer> buffers, expected;
    const auto takes_part = [&](int p) { return !c.inter() || c.low(p) != c.low(root); };
    for (int p = 0; p < c.n; ++p) {
        const int64_t count = takes_part(p) ? counts[static_cast<size_t>(c.side_rank(p))] : 0;
        const Values values = random_values(c.random, 2 * count);
        buffers.emplace_back(c.pair_shape(), count);
        if (gather) {
            buffers.back().put(values);
            expected.push_back(buffers.back());
            if (!takes_part(p)) continue;
            expected_blocks.put(c.side_rank(p), values);
            if (in_place && p == root) blocks.put(c.side_rank(p), values);
        } else {
            expected.push_back(buffers.back());
            if (!takes_part(p)) continue;
            blocks.put(c.side_rank(p), values);
            expected_blocks.put(c.side_rank(p), values);
            if (!in_place || p != root) expected.back().put(values);
        }
    }
    c.run_and_compare(
        [&](int p, View v) {
            Buffer& b = buffers[static_cast<size_t>(p)];
            void* address = in_place && p == root ? MPI_IN_PLACE : b.address();
            const Blocks unused(nullptr, Counts(nullptr), Counts(nullptr), *b.shape->type);
            const Blocks mine = p == root ? blocks.blocks() : uniform ? Blocks(nullptr, 0, *b.shape->type) : unused;
            if (!c.inter()) {
                return gather ? collective::gather(v, address, b.count, *b.shape->type, mine, root)
                              : collective::scatter(v, mine, address, b.count, *b.shape->type, root);
            }
            const int given = takes_part(p) ? c.side_rank(root) : p == root ? MPI_ROOT : MPI_PROC_NULL;
            return gather ? collective::inter::gather(v, address, b.count, *b.shape->type, mine, given)
                          : collective::inter::scatter(v, mine, address, b.count, *b.shape->type, given);
        },
        buffers, expected);
    EXPECT_TRUE(blocks.memory == expected_blocks.memory);
}

void test_gather(Case& c) { test_gather_or_scatter(c, true); }
void test_scatter(Case& c) { test_gather_or_scatter(c, false); }

void test_allgather(Case& c) {
    // counts[s]: numbers of elements that the members of side s send. Side 0 is the group of the low ranks; an intra-communicator has only
    // this side.
    const bool uniform = c.coin(), in_place = !c.inter() && c.coin();
    std::vector<std::vector<int64_t>> counts;
    counts.push_back(block_counts(c, uniform, c.inter() ? c.first : c.n));
    if (c.inter()) {
        c.count = c.below(20);
        counts.push_back(block_counts(c, uniform, c.n - c.first));
    }
    std::vector<Buffer> send;
    std::vector<Values> values;
    for (int p = 0; p < c.n; ++p) {
        const int64_t count = counts[c.inter() && !c.low(p)][static_cast<size_t>(c.side_rank(p))];
        values.push_back(random_values(c.random, 2 * count));
        send.emplace_back(c.pair_shape(), count);
        send.back().put(values.back());
    }
    std::vector<BlockBuffer> got, expected;
    for (int p = 0; p < c.n; ++p) {
        const int peers = c.other_size(p);
        got.emplace_back(c.random, uniform ? Form::uniform : Form::counted, counts[c.inter() && c.low(p)],
                         same_shape(c, peers));
        if (in_place) got.back().put(p, values[static_cast<size_t>(p)]);
        expected.push_back(got.back());
        for (int r = 0; r < peers; ++r) expected.back().put(r, values[static_cast<size_t>(c.other(p, r))]);
    }
    c.run_and_compare(
        [&](int p, View v) {
            const auto i = static_cast<size_t>(p);
            const void* input = in_place ? MPI_IN_PLACE : send[i].address();
            const auto& function = c.inter() ? collective::inter::allgather : collective::allgather;
            return function(v, input, send[i].count, *send[i].shape->type, got[i].blocks());
        },
        got, expected);
}

void test_alltoall(Case& c) {
    const Form form = static_cast<Form>(c.below(3));
    const bool in_place = !c.inter() && c.coin();
    // counts[p][q]: elements from participant p to q; symmetric if in place. Uniform: equal everywhere.
    std::vector<std::vector<int64_t>> counts(static_cast<size_t>(c.n), std::vector<int64_t>(static_cast<size_t>(c.n), c.count));
    if (form != Form::uniform)
        for (size_t p = 0; p < counts.size(); ++p)
            for (size_t q = 0; q < counts.size(); ++q) counts[p][q] = in_place && q < p ? counts[q][p] : c.below(20);
    const auto shapes = [&](int peers) {
        std::vector<const Shape*> all = same_shape(c, peers);
        if (form == Form::typed)
            for (auto& shape : all) shape = &c.pair_shape();
        return all;
    };
    std::map<std::pair<int, int>, Values> values;
    for (int p = 0; p < c.n; ++p)
        for (int q = 0; q < c.n; ++q)
            values[{p, q}] = random_values(c.random, 2 * counts[static_cast<size_t>(p)][static_cast<size_t>(q)]);
    std::vector<BlockBuffer> send, got, expected;
    for (int p = 0; p < c.n; ++p) {
        std::vector<int64_t> out, in;
        for (int r = 0; r < c.other_size(p); ++r) {
            const auto q = static_cast<size_t>(c.other(p, r));
            out.push_back(counts[static_cast<size_t>(p)][q]);
            in.push_back(counts[q][static_cast<size_t>(p)]);
        }
        send.emplace_back(c.random, form, out, shapes(c.other_size(p)));
        got.emplace_back(c.random, form, in, shapes(c.other_size(p)));
        for (int r = 0; r < c.other_size(p); ++r) {
            send.back().put(r, values[{p, c.other(p, r)}]);
            if (in_place) got.back().put(r, values[{p, c.other(p, r)}]);
        }
        expected.push_back(got.back());
        for (int r = 0; r < c.other_size(p); ++r) expected.back().put(r, values[{c.other(p, r), p}]);
    }
    c.run_and_compare(
        [&](int p, View v) {
            const auto i = static_cast<size_t>(p);
            if (c.inter()) return collective::inter::alltoall(v, send[i].blocks(), got[i].blocks());
            return collective::alltoall(v, in_place, send[i].blocks(), got[i].blocks());
        },
        got, expected);
}

struct Operations {
    CollectiveKind kind;
    void (*test)(Case&);
};
constexpr Operations kOperations[] = {
    {CollectiveKind::barrier, test_barrier},
    {CollectiveKind::bcast, test_bcast},
    {CollectiveKind::reduce, test_reduce},
    {CollectiveKind::allreduce, test_allreduce},
    {CollectiveKind::gather, test_gather},
    {CollectiveKind::scatter, test_scatter},
    {CollectiveKind::allgather, test_allgather},
    {CollectiveKind::alltoall, test_alltoall},
    {CollectiveKind::reduce_scatter, test_reduce_scatter},
    {CollectiveKind::scan, test_scan},
};

/// Overrides the algorithm of a kind of collective, and restores the algorithm table's choice when the test ends.
struct Override {
    CollectiveKind kind;
    Override(CollectiveKind k, std::string_view algorithm) : kind(k) {
        EXPECT_EQ(collective::set_override(k, algorithm), MPI_SUCCESS);
    }
    ~Override() { collective::set_override(kind, "auto"); }
};

TEST(Collective, EveryAlgorithmAgreesWithTheReference) {
    for (const auto& [kind, test] : kOperations) {
        for (int a = -1;; ++a) {
            const collective::Algorithm* algorithm = collective::algorithm_of(kind, a < 0 ? 0 : a);
            if (!algorithm) break;
            const std::string_view name = a < 0 ? "auto" : algorithm->name;
            const Override override(kind, name);
            for (int n = 1; n <= 17; ++n) {
                for (uint32_t seed = 0; seed < 6; ++seed) {
                    SCOPED_TRACE(std::string(collective::name(kind)) + " by " + std::string(name) + ", " + std::to_string(n) +
                                 " ranks, seed " + std::to_string(seed));
                    Case c(seed * 1000 + static_cast<uint32_t>(n), n, 0);
                    test(c);
                    if (testing::Test::HasFailure()) return;
                }
            }
        }
    }
}

TEST(Collective, InterCommunicatorAlgorithmsAgreeWithTheReference) {
    for (const auto& [kind, test] : kOperations) {
        for (int n = 2; n <= 12; ++n) {
            for (int first = 1; first < n; ++first) {
                for (uint32_t seed = 0; seed < 3; ++seed) {
                    SCOPED_TRACE(std::string(collective::name(kind)) + " between groups of " + std::to_string(first) + " and " +
                                 std::to_string(n - first) + ", seed " + std::to_string(seed));
                    Case c(seed * 1000 + static_cast<uint32_t>(n), n, first);
                    test(c);
                    if (testing::Test::HasFailure()) return;
                }
            }
        }
    }
}

}  // namespace
