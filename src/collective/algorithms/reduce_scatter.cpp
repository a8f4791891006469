#include <vector>

#include "collective/algorithms.h"
#include "collective/algorithms/recursive_halving.h"

namespace starling::collective {

namespace {

/// The offsets of the ranks' shares, and the total. Read before the first message: some known programs free the counts of a non-blocking
/// call too early.
class Offsets {
  public:
    Offsets(const Shares& shares, int n) : values_(static_cast<size_t>(n) + 1) {
        for (size_t i = 0; i < static_cast<size_t>(n); ++i) values_[i + 1] = values_[i] + shares[static_cast<int>(i)];
    }
    int64_t operator[](int rank) const { return values_[static_cast<size_t>(rank)]; }
    int64_t share(int rank) const { return (*this)[rank + 1] - (*this)[rank]; }
    int64_t total() const { return values_.back(); }
    const int64_t* data() const { return values_.data(); }

  private:
    std::vector<int64_t> values_;
};

}  // namespace

Task reduce_scatter_halving(View v, const void* input, void* receive, Shares shares, const Datatype& type, const Op& op) {
    const Offsets ranks(shares, v.n);
    const int64_t count = ranks.total();
    Temporary value(type, count), operand(type, count);
    datatype::copy(type, count, input, value.data());

    // A core rank represents itself and its left neighbor, which was folded into it.
    const Halving halving(v);
    std::vector<int64_t> cores(static_cast<size_t>(halving.power) + 1);
    for (int core = 0; core < halving.power; ++core)
        cores[static_cast<size_t>(core)] = ranks[core < halving.rest ? 2 * core : halving.rank_of(core)];
    cores.back() = count;
    v.note(co_await halve(v, halving, value.data(), operand.data(), cores.data(), type, op));

    if (halving.core < 0) {
        co_await v.receive(receive, ranks.share(v.me), type, v.me + 1);
        co_return v.error;
    }
    if (v.me < 2 * halving.rest)
        co_await v.send(element(value.data(), ranks[v.me - 1], type), ranks.share(v.me - 1), type, v.me - 1);
    datatype::copy(type, ranks.share(v.me), element(value.data(), ranks[v.me], type), receive);
    co_return v.error;
}

Task reduce_scatter_pairwise(View v, const void* input, void* receive, Shares shares, const Datatype& type, const Op& op) {
    const Offsets ranks(shares, v.n);
    const auto share = [&](int rank) { return element(input, ranks[rank], type); };
    const int64_t count = ranks.share(v.me);
    Temporary value(type, count), operand(type, count);
    datatype::copy(type, count, share(v.me), value.data());
    for (int i = 1; i < v.n; ++i) {
        const int to = (v.me + i) % v.n, from = (v.me - i + v.n) % v.n;
        co_await v.send_receive(share(to), ranks.share(to), type, to, operand.data(), count, type, from);
        v.note(datatype::apply(op, operand.data(), value.data(), count, type));
    }
    datatype::copy(type, count, value.data(), receive);
    co_return v.error;
}

Task reduce_scatter_reduce_scatter(View v, const void* input, void* receive, Shares shares, const Datatype& type,
                                   const Op& op) {
    const Offsets ranks(shares, v.n);
    std::vector<int64_t> counts(static_cast<size_t>(v.n));
    for (int i = 0; i < v.n; ++i) counts[static_cast<size_t>(i)] = ranks.share(i);
    const int64_t count = ranks.total();
    Temporary value;
    if (v.me == 0) value = Temporary(type, count);
    v.note(co_await reduce_binomial(v, input, value.data(), count, type, op, 0));
    const Blocks blocks(value.data(), Counts(counts.data()), Counts(ranks.data()), type);
    v.note(co_await scatter_linear(v, blocks, receive, ranks.share(v.me), type, 0));
    co_return v.error;
}

}  // namespace starling::collective
