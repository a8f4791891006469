// Algorithms whose last step is a broadcast from one leader of a host to all others (leader_broadcast.h).
#include "collective/algorithms.h"
#include "collective/algorithms/leader_broadcast.h"
#include "collective/algorithms/wide_tree.h"

namespace starling::collective {

namespace {

/// Reduces all operands into `receive` at rank 0, in any order; `receive` holds this rank's operand on entry.
Task reduce_up(View v, void* receive, int64_t count, const Datatype& type, const Op& op) {
    const WideTree way(v);
    const int children = way.children();
    {
        Temporary operands(type, count * children);
        RequestGroup group(v, 0, children);
        for (int i = 0; i < children; ++i) group.receive(element(operands.data(), i * count, type), count, type, way.first + i);
        co_await group;
        for (int i = 0; i < children && v.error == MPI_SUCCESS; ++i)
            v.note(datatype::apply(op, element(operands.data(), i * count, type), receive, count, type));
    }
    if (v.me != 0) co_await v.send(receive, count, type, way.parent);
    co_return v.error;
}

}  // namespace

Task barrier_multicast(View v) {
    const WideTree way(v);
    RequestGroup arrivals(v, 0, way.children());
    for (int child = way.first; child < way.last; ++child) arrivals.receive(nullptr, 0, byte_type(), child);
    co_await arrivals;
    if (v.me != 0) co_await v.send(nullptr, 0, byte_type(), way.parent);
    std::byte token{};  // one byte, as leader_broadcast() requires; its value is never used
    co_return co_await leader_broadcast(v, &token, 1, byte_type(), 0);
}

Task bcast_multicast(View v, void* buffer, int64_t count, const Datatype& type, int root) {
    return leader_broadcast(v, buffer, count, type, root);
}

Task allreduce_multicast(View v, const void* send, void* receive, int64_t count, const Datatype& type, const Op& op) {
    if (op.commutative) {
        if (send != MPI_IN_PLACE) datatype::copy(type, count, send, receive);
        v.note(co_await reduce_up(v, receive, count, type, op));
    } else {
        const void* input = v.me == 0 ? send : input_of(send, receive);
        v.note(co_await reduce_binomial(v, input, receive, count, type, op, 0));
    }
    co_return co_await leader_broadcast(v, receive, count, type, 0);
}

Task allgather_multicast(View v, Blocks blocks) {
    const int64_t count = blocks.count(0);
    const Datatype& type = blocks.type(0);
    if (v.me == 0) {
        RequestGroup arrivals(v, 0, v.n - 1);
        for (int i = 1; i < v.n; ++i) arrivals.receive(blocks.at(i), count, type, i);
        co_await arrivals;
    }
    if (v.me != 0) co_await v.send(blocks.at(v.me), count, type, 0);
    co_return co_await leader_broadcast(v, blocks.at(0), count * v.n, type, 0);
}

}  // namespace starling::collective
