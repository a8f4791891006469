#include <vector>

#include "collective/algorithms.h"
#include "collective/halving.h"

namespace starling::collective {

namespace {

void load_input(const void* send, void* receive, int64_t count, const Datatype& type) {
    if (send != MPI_IN_PLACE && count > 0) datatype::copy(type, count, send, receive);
}

}  // namespace

Task allreduce_recursive_doubling(View v, const void* send, void* receive, int64_t count,
                                  const Datatype& type, const Op& op) {
    load_input(send, receive, count, type);
    Temporary operand(type, count);
    Accumulator sum(receive, operand.data(), count, type, op);
    const Halving halving(v);
    if (halving.core < 0) {
        co_await v.send(receive, count, type, v.me + 1);
        co_await v.receive(receive, count, type, v.me + 1);
        co_return v.error;
    }
    if (v.me < 2 * halving.rest) {
        co_await v.receive(sum.operand(), count, type, v.me - 1);
        v.note(sum.add_left());
    }
    // Before each round the value covers an aligned run of core ranks; the partner's run adjoins it.
    for (int width = 1; width < halving.power; width *= 2) {
        const int core = halving.core ^ width, partner = halving.rank_of(core);
        co_await v.send_receive(sum.value(), count, type, partner, sum.operand(), count, type, partner);
        v.note(core < halving.core ? sum.add_left() : sum.add_right());
    }
    sum.store(receive);
    if (v.me < 2 * halving.rest) co_await v.send(receive, count, type, v.me - 1);
    co_return v.error;
}

Task allreduce_rabenseifner(View v, const void* send, void* receive, int64_t count, const Datatype& type,
                            const Op& op) {
    load_input(send, receive, count, type);
    Temporary operand(type, count);
    const Halving halving(v);
    const std::vector<int64_t> offsets = equal_offsets(count, halving.power);
    v.note(co_await halve(v, halving, receive, operand.data(), offsets.data(), type, op));
    v.note(co_await unhalve(v, halving, receive, offsets.data(), type));
    co_return v.error;
}

Task allreduce_ring(View v, const void* send, void* receive, int64_t count, const Datatype& type,
                    const Op& op) {
    load_input(send, receive, count, type);
    Temporary operand(type, piece_of(count, v.n, 0).count);
    const int right = (v.me + 1) % v.n, left = (v.me - 1 + v.n) % v.n;
    const auto piece = [&](int number) { return piece_of(count, v.n, (number + 2 * v.n) % v.n); };

    // Round the ring once to reduce (I end with piece me + 1), once more to pass the results on.
    for (int step = 0; step < v.n - 1; ++step) {
        const Piece out = piece(v.me - step), in = piece(v.me - step - 1);
        co_await v.send_receive(element(receive, out.offset, type), out.count, type, right, operand.data(),
                                in.count, type, left);
        v.note(datatype::apply(op, operand.data(), element(receive, in.offset, type), in.count, type));
    }
    for (int step = 0; step < v.n - 1; ++step) {
        const Piece out = piece(v.me + 1 - step), in = piece(v.me - step);
        co_await v.send_receive(element(receive, out.offset, type), out.count, type, right,
                                element(receive, in.offset, type), in.count, type, left);
    }
    co_return v.error;
}

Task allreduce_reduce_bcast(View v, const void* send, void* receive, int64_t count, const Datatype& type,
                            const Op& op) {
    // MPI_IN_PLACE is for the root of a reduction only.
    const void* input = v.me == 0 ? send : input_of(send, receive);
    v.note(co_await reduce_binomial(v, input, receive, count, type, op, 0));
    v.note(co_await bcast_binomial(v, receive, count, type, 0));
    co_return v.error;
}

}  // namespace starling::collective
