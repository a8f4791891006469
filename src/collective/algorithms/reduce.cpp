#include "collective/algorithms.h"
#include "collective/algorithms/recursive_halving.h"

namespace starling::collective {

namespace {

/// The buffers of a reduction: `value` is the receive buffer at the root and the temporary `own` elsewhere; `operand` is for arriving data.
struct ReduceBuffers {
    Temporary own, operand;
    void* value;
    ReduceBuffers(bool at_root, const void* send, void* receive, int64_t count, const Datatype& type)
        : operand(type, count), value(receive) {
        if (!at_root) {
            own = Temporary(type, count);
            value = own.data();
        }
        if (input_of(send, value) != value) datatype::copy(type, count, send, value);
    }
};

}  // namespace

Task reduce_binomial(View v, const void* send, void* receive, int64_t count, const Datatype& type, const Op& op, int root) {
    // A non-commutative operation needs subtrees of consecutive ranks, which they are only if the tree starts at rank 0.
    const int top = op.commutative ? root : 0;
    const int relative = (v.me - top + v.n) % v.n;
    const bool leaf = relative % 2 == 1 || relative == v.n - 1;
    if (leaf && v.me != root && relative != 0) {
        int distance = 1;
        while (!(relative & distance)) distance *= 2;
        co_await v.send(send, count, type, (relative - distance + top) % v.n);
        co_return v.error;
    }

    ReduceBuffers buffers(v.me == root, send, receive, count, type);
    Accumulator sum(buffers.value, buffers.operand.data(), count, type, op);
    for (int distance = 1; distance < v.n; distance *= 2) {
        if (relative & distance) {
            co_await v.send(sum.value(), count, type, (relative - distance + top) % v.n);
            break;
        }
        if (relative + distance >= v.n) continue;
        co_await v.receive(sum.operand(), count, type, (relative + distance + top) % v.n);
        v.note(sum.add_right());
    }
    if (top == root) {
        if (v.me == root) sum.store(receive);
    } else if (v.me == top) {
        co_await v.send(sum.value(), count, type, root);
    } else if (v.me == root) {
        co_await v.receive(receive, count, type, top);
    }
    co_return v.error;
}

Task reduce_linear(View v, const void* send, void* receive, int64_t count, const Datatype& type, const Op& op, int root) {
    if (v.me != root) {
        co_await v.send(send, count, type, root);
        co_return v.error;
    }
    // Receive from the last rank to the first, so that the operand always is the left argument.
    Temporary a(type, count), b(type, count);
    Accumulator sum(a.data(), b.data(), count, type, op);
    const void* own = input_of(send, receive);
    for (int rank = v.n - 1; rank >= 0; --rank) {
        void* place = rank == v.n - 1 ? sum.value() : sum.operand();
        if (rank == v.me)
            datatype::copy(type, count, own, place);
        else
            co_await v.receive(place, count, type, rank);
        if (rank != v.n - 1) v.note(sum.add_left());
    }
    sum.store(receive);
    co_return v.error;
}

Task reduce_rabenseifner(View v, const void* send, void* receive, int64_t count, const Datatype& type, const Op& op, int root) {
    ReduceBuffers buffers(v.me == root, send, receive, count, type);
    void* value = buffers.value;
    const Halving halving(v);
    const std::vector<int64_t> offsets = equal_offsets(count, halving.power);
    v.note(co_await halve(v, halving, value, buffers.operand.data(), offsets.data(), type, op));

    // Every core rank sends its piece directly to the root.
    if (v.me == root) {
        RequestGroup receives(v, 0, halving.power);
        for (int core = 0; core < halving.power; ++core) {
            const ElementRange piece = part_of(count, halving.power, core);
            if (core != halving.core && piece.count > 0)
                receives.receive(element(value, piece.offset, type), piece.count, type, halving.rank_of(core));
        }
        co_await receives;
    } else if (halving.core >= 0) {
        const ElementRange piece = part_of(count, halving.power, halving.core);
        if (piece.count > 0) co_await v.send(element(value, piece.offset, type), piece.count, type, root);
    }
    co_return v.error;
}

}  // namespace starling::collective
