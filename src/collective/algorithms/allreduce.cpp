#include <vector>

#include "collective/algorithms.h"
#include "collective/algorithms/recursive_halving.h"
#include "collective/collective.h"

namespace starling::collective {

namespace {

void load_input(const void* send, void* receive, int64_t count, const Datatype& type) {
    if (send != MPI_IN_PLACE && count > 0) datatype::copy(type, count, send, receive);
}

}  // namespace

Task allreduce_recursive_doubling(View v, const void* send, void* receive, int64_t count, const Datatype& type, const Op& op) {
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
    // Before each round `sum` is the reduction over an aligned run of `width` core ranks (Halving); the partner's is that over the
    // adjoining run.
    for (int width = 1; width < halving.power; width *= 2) {
        const int core = halving.core ^ width, partner = halving.rank_of(core);
        co_await v.send_receive(sum.value(), count, type, partner, sum.operand(), count, type, partner);
        v.note(core < halving.core ? sum.add_left() : sum.add_right());
    }
    sum.store(receive);
    if (v.me < 2 * halving.rest) co_await v.send(receive, count, type, v.me - 1);
    co_return v.error;
}

Task allreduce_rabenseifner(View v, const void* send, void* receive, int64_t count, const Datatype& type, const Op& op) {
    load_input(send, receive, count, type);
    Temporary operand(type, count);
    const Halving halving(v);
    const std::vector<int64_t> offsets = equal_offsets(count, halving.power);
    v.note(co_await halve(v, halving, receive, operand.data(), offsets.data(), type, op));
    v.note(co_await unhalve(v, halving, receive, offsets.data(), type));
    co_return v.error;
}

Task reduce_around(View v, const void* send, void* receive, int64_t count, const Datatype& type, const Op& op) {
    load_input(send, receive, count, type);
    Temporary operand(type, part_of(count, v.n, 0).count);
    const int right = (v.me + 1) % v.n, left = (v.me - 1 + v.n) % v.n;
    const auto piece = [&](int number) { return part_of(count, v.n, (number + 2 * v.n) % v.n); };
    for (int step = 0; step < v.n - 1; ++step) {
        const ElementRange out = piece(v.me - step), in = piece(v.me - step - 1);
        co_await v.send_receive(element(receive, out.offset, type), out.count, type, right, operand.data(), in.count, type,
                                left);
        v.note(datatype::apply(op, operand.data(), element(receive, in.offset, type), in.count, type));
    }
    co_return v.error;
}

Task allreduce_ring(View v, const void* send, void* receive, int64_t count, const Datatype& type, const Op& op) {
    v.note(co_await reduce_around(v, send, receive, count, type, op));
    const int right = (v.me + 1) % v.n, left = (v.me - 1 + v.n) % v.n;
    const auto piece = [&](int number) { return part_of(count, v.n, (number + 2 * v.n) % v.n); };
    for (int step = 0; step < v.n - 1; ++step) {
        const ElementRange out = piece(v.me + 1 - step), in = piece(v.me - step);
        co_await v.send_receive(element(receive, out.offset, type), out.count, type, right, element(receive, in.offset, type),
                                in.count, type, left);
    }
    co_return v.error;
}

Task allreduce_linear(View v, const void* send, void* receive, int64_t count, const Datatype& type, const Op& op) {
    const void* input = input_of(send, receive);
    const ElementRange mine = part_of(count, v.n, v.me);
    Temporary room(type, mine.count * v.n);
    const auto operand = [&](int rank) { return element(room.data(), rank * mine.count, type); };
    RequestGroup group(v, v.n, v.n);

    // Each rank receives its piece of all operands and so reduces in rank order, which suits every operation.
    for (int i = 1; i < v.n; ++i) {
        const int from = (v.me - i + v.n) % v.n;
        group.receive(operand(from), mine.count, type, from);
    }
    for (int i = 1; i < v.n; ++i) {
        const int to = (v.me + i) % v.n;
        const ElementRange piece = part_of(count, v.n, to);
        group.send(element(input, piece.offset, type), piece.count, type, to);
    }
    datatype::copy(type, mine.count, element(input, mine.offset, type), operand(v.me));
    co_await group;
    for (int rank = v.n - 2; rank >= 0; --rank) v.note(datatype::apply(op, operand(rank), operand(v.n - 1), mine.count, type));

    for (int i = 1; i < v.n; ++i) {
        const int from = (v.me - i + v.n) % v.n;
        const ElementRange piece = part_of(count, v.n, from);
        group.receive(element(receive, piece.offset, type), piece.count, type, from);
    }
    for (int i = 1; i < v.n; ++i) group.send(operand(v.n - 1), mine.count, type, (v.me + i) % v.n);
    datatype::copy(type, mine.count, operand(v.n - 1), element(receive, mine.offset, type));
    co_await group;
    co_return v.error;
}

Task allreduce_reduce_bcast(View v, const void* send, void* receive, int64_t count, const Datatype& type, const Op& op) {
    // In reduce() only the root, rank 0, may pass MPI_IN_PLACE.
    const void* input = v.me == 0 ? send : input_of(send, receive);
    v.note(co_await reduce(v, input, receive, count, type, op, 0));
    v.note(co_await bcast(v, receive, count, type, 0));
    co_return v.error;
}

}  // namespace starling::collective
