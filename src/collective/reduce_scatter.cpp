#include <vector>

#include "collective/algorithms.h"
#include "collective/halving.h"

namespace starling::collective {

namespace {

std::vector<int64_t> rank_offsets(const Shares& shares, int n) {
    std::vector<int64_t> offsets(static_cast<size_t>(n) + 1);
    for (int i = 0; i < n; ++i)
        offsets[static_cast<size_t>(i) + 1] = offsets[static_cast<size_t>(i)] + shares[i];
    return offsets;
}

}  // namespace

Task reduce_scatter_halving(View v, const void* input, void* receive, Shares shares, const Datatype& type,
                            const Op& op) {
    const std::vector<int64_t> ranks = rank_offsets(shares, v.n);
    const auto begin = [&ranks](int rank) { return ranks[static_cast<size_t>(rank)]; };
    const int64_t count = ranks.back();
    Temporary value(type, count), operand(type, count);
    datatype::copy(type, count, input, value.data());

    // A core rank stands for itself and for the rank folded into it, its left neighbour.
    const Halving halving(v);
    std::vector<int64_t> cores(static_cast<size_t>(halving.power) + 1);
    for (int core = 0; core < halving.power; ++core)
        cores[static_cast<size_t>(core)] = begin(core < halving.rest ? 2 * core : halving.rank_of(core));
    cores.back() = count;
    v.note(co_await halve(v, halving, value.data(), operand.data(), cores.data(), type, op));

    if (halving.core < 0) {
        co_await v.receive(receive, shares[v.me], type, v.me + 1);
        co_return v.error;
    }
    if (v.me < 2 * halving.rest)
        co_await v.send(element(value.data(), begin(v.me - 1), type), shares[v.me - 1], type, v.me - 1);
    datatype::copy(type, shares[v.me], element(value.data(), begin(v.me), type), receive);
    co_return v.error;
}

Task reduce_scatter_pairwise(View v, const void* input, void* receive, Shares shares, const Datatype& type,
                             const Op& op) {
    const std::vector<int64_t> ranks = rank_offsets(shares, v.n);
    const auto share = [&](int rank) { return element(input, ranks[static_cast<size_t>(rank)], type); };
    const int64_t count = shares[v.me];
    Temporary value(type, count), operand(type, count);
    datatype::copy(type, count, share(v.me), value.data());
    for (int i = 1; i < v.n; ++i) {
        const int to = (v.me + i) % v.n, from = (v.me - i + v.n) % v.n;
        co_await v.send_receive(share(to), shares[to], type, to, operand.data(), count, type, from);
        v.note(datatype::apply(op, operand.data(), value.data(), count, type));
    }
    datatype::copy(type, count, value.data(), receive);
    co_return v.error;
}

Task reduce_scatter_reduce(View v, const void* input, void* receive, Shares shares, const Datatype& type,
                           const Op& op) {
    const std::vector<int64_t> ranks = rank_offsets(shares, v.n);
    std::vector<int64_t> counts(static_cast<size_t>(v.n));
    for (int i = 0; i < v.n; ++i) counts[static_cast<size_t>(i)] = shares[i];
    const int64_t count = ranks.back();
    Temporary value;
    if (v.me == 0) value = Temporary(type, count);
    v.note(co_await reduce_binomial(v, input, value.data(), count, type, op, 0));
    const Blocks blocks(value.data(), Counts(counts.data()), Counts(ranks.data()), type);
    v.note(co_await scatter_linear(v, blocks, receive, shares[v.me], type, 0));
    co_return v.error;
}

}  // namespace starling::collective
