#include "collective/collective.h"

#include "collective/algorithms.h"
#include "collective/select.h"

namespace starling::collective {

namespace {

Call call_of(Kind kind, const View& v, uint64_t bytes) {
    Call call{kind, v.n, bytes};
    call.network = v.network;
    if (const HostMap* hosts = v.whole_side() ? v.exchange->hosts() : nullptr) {
        call.two_levels = true;
        call.consecutive = hosts->contiguous;
    }
    return call;
}

Call call_of(Kind kind, const View& v, int64_t count, const Datatype& type, const Op& op) {
    Call call = call_of(kind, v, datatype::packed_size(type, count));
    call.commutative = op.commutative;
    return call;
}

Task finished(int error) { co_return error; }

/// What every reduction over one rank comes to.
Task copied(const void* send, void* receive, int64_t count, const Datatype& type) {
    if (input_of(send, receive) != receive && count > 0) datatype::copy(type, count, send, receive);
    return finished(MPI_SUCCESS);
}

}  // namespace

Task barrier(View v) {
    if (v.n == 1) return finished(v.error);
    switch (select(call_of(Kind::barrier, v, 0))) {
        case Algorithm::tree:
            return barrier_tree(v);
        case Algorithm::two_level:
            return barrier_two_level(v);
        default:
            return barrier_dissemination(v);
    }
}

Task bcast(View v, void* buffer, int64_t count, const Datatype& type, int root) {
    const uint64_t bytes = datatype::packed_size(type, count);
    if (v.n == 1 || bytes == 0) return finished(v.error);
    switch (select(call_of(Kind::bcast, v, bytes))) {
        case Algorithm::linear:
            return bcast_linear(v, buffer, count, type, root);
        case Algorithm::scatter_allgather:
            return bcast_scatter_allgather(v, buffer, count, type, root);
        case Algorithm::chain:
            return bcast_chain(v, buffer, count, type, root);
        case Algorithm::two_level:
            return bcast_two_level(v, buffer, count, type, root);
        default:
            return bcast_binomial(v, buffer, count, type, root);
    }
}

Task reduce(View v, const void* send, void* receive, int64_t count, const Datatype& type, const Op& op, int root) {
    if (count == 0) return finished(v.error);
    if (v.n == 1) return copied(send, receive, count, type);
    switch (select(call_of(Kind::reduce, v, count, type, op))) {
        case Algorithm::linear:
            return reduce_linear(v, send, receive, count, type, op, root);
        case Algorithm::rabenseifner:
            return reduce_rabenseifner(v, send, receive, count, type, op, root);
        case Algorithm::two_level:
            return reduce_two_level(v, send, receive, count, type, op, root);
        default:
            return reduce_binomial(v, send, receive, count, type, op, root);
    }
}

Task allreduce(View v, const void* send, void* receive, int64_t count, const Datatype& type, const Op& op) {
    if (count == 0) return finished(v.error);
    if (v.n == 1) return copied(send, receive, count, type);
    switch (select(call_of(Kind::allreduce, v, count, type, op))) {
        case Algorithm::rabenseifner:
            return allreduce_rabenseifner(v, send, receive, count, type, op);
        case Algorithm::ring:
            return allreduce_ring(v, send, receive, count, type, op);
        case Algorithm::linear:
            return allreduce_linear(v, send, receive, count, type, op);
        case Algorithm::reduce_bcast:
            return allreduce_reduce_bcast(v, send, receive, count, type, op);
        case Algorithm::two_level:
            return allreduce_two_level(v, send, receive, count, type, op);
        default:
            return allreduce_recursive_doubling(v, send, receive, count, type, op);
    }
}

Task gather(View v, const void* send, int64_t count, const Datatype& type, Blocks receive, int root) {
    // Members other than the root do not know whether the blocks are uniform: the caller tells by
    // `receive`.
    Call call{Kind::gather, v.n, v.me == root ? receive.bytes(root) : datatype::packed_size(type, count)};
    call.uniform = receive.uniform();
    if (select(call) == Algorithm::binomial) return gather_binomial(v, send, count, type, receive, root);
    return gather_linear(v, send, count, type, receive, root);
}

Task scatter(View v, Blocks send, void* receive, int64_t count, const Datatype& type, int root) {
    Call call{Kind::scatter, v.n, v.me == root ? send.bytes(root) : datatype::packed_size(type, count)};
    call.uniform = send.uniform();
    if (select(call) == Algorithm::binomial) return scatter_binomial(v, send, receive, count, type, root);
    return scatter_linear(v, send, receive, count, type, root);
}

Task allgather(View v, const void* send, int64_t count, const Datatype& type, Blocks receive) {
    if (send != MPI_IN_PLACE)
        v.note(datatype::copy(type, count, send, receive.type(v.me), receive.count(v.me), receive.at(v.me)));
    if (v.n == 1) return finished(v.error);
    Call call = call_of(Kind::allgather, v, receive.bytes(0));
    call.uniform = receive.uniform();
    if (!call.uniform) {
        call.bytes = 0;
        for (int i = 0; i < v.n; ++i) call.bytes += receive.bytes(i);
        call.bytes /= static_cast<uint64_t>(v.n);
    } else if (call.bytes == 0) {
        return finished(v.error);
    }
    switch (select(call)) {
        case Algorithm::linear:
            return allgather_linear(v, receive);
        case Algorithm::recursive_doubling:
            return allgather_recursive_doubling(v, receive);
        case Algorithm::bruck:
            return allgather_bruck(v, receive);
        case Algorithm::two_level:
            return allgather_two_level(v, receive);
        default:
            return allgather_ring(v, receive);
    }
}

Task alltoall(View v, bool in_place, Blocks send, Blocks receive) {
    if (in_place) return alltoall_in_place(v, receive);
    Call call{Kind::alltoall, v.n, receive.bytes(0)};
    call.uniform = receive.uniform();
    if (!call.uniform) call.bytes = 0;  // members may see different sizes
    switch (select(call)) {
        case Algorithm::bruck:
            return alltoall_bruck(v, send, receive);
        case Algorithm::pairwise:
            return alltoall_pairwise(v, send, receive);
        default:
            return alltoall_linear(v, send, receive);
    }
}

Task reduce_scatter(View v, const void* send, void* receive, Shares shares, const Datatype& type, const Op& op) {
    if (v.n == 1) return copied(send, receive, shares[0], type);
    const void* input = input_of(send, receive);
    switch (select(call_of(Kind::reduce_scatter, v, shares.total(v.n), type, op))) {
        case Algorithm::halving:
            return reduce_scatter_halving(v, input, receive, shares, type, op);
        case Algorithm::pairwise:
            return reduce_scatter_pairwise(v, input, receive, shares, type, op);
        default:
            return reduce_scatter_reduce(v, input, receive, shares, type, op);
    }
}

Task scan(View v, const void* send, void* receive, int64_t count, const Datatype& type, const Op& op, bool exclusive) {
    if (count == 0) return finished(v.error);
    if (v.n == 1) return exclusive ? finished(v.error) : copied(send, receive, count, type);
    if (select(call_of(Kind::scan, v, count, type, op)) == Algorithm::linear)
        return scan_linear(v, send, receive, count, type, op, exclusive);
    return scan_recursive_doubling(v, send, receive, count, type, op, exclusive);
}

}  // namespace starling::collective
