#include "collective/collective.h"

#include "collective/algorithm_choice.h"
#include "collective/algorithms.h"
#include "collective/core/multicast_sender.h"

namespace starling::collective {

namespace {

/// Sets the view's multicast channel if no two participants share a host: then each of them is its host's leader.
void know_cast(View& v) {
    if (!v.cast && v.whole_side() && v.exchange->each_has_its_host()) v.cast = v.exchange->cast(v.tag);
}

/// Sets whether the leaders of the call's hosts can multicast in turns. Only long data does, so other calls need not create the channel.
/// Between groups the local view's steps share one tag, so they take no turns. If measured times decide, neither does a call that may last as
/// long as the program computes, nor one whose blocks of a host are apart: the turns would need memory for a second copy of the result.
void know_turns(View& v, CallParameters& call) {
    if ((call.bytes <= kLeastOfTurns && !has_override(call.kind)) || v.exchange->inter()) return;
    if (!call.network && !call.two_levels) return;
    Cast* const cast = v.exchange->turns(v.tag);
    if (!cast || (cast->measures() && !(v.blocking && (call.network || call.consecutive)))) return;
    call.turns = true;
    v.turns = cast;
}

CallParameters call_of(CollectiveKind kind, const View& v, uint64_t bytes) {
    CallParameters call{kind, v.n, bytes};
    call.network = v.network;
    if (v.whole_side()) {
        const HostMap* const hosts = v.exchange->hosts();
        call.two_levels = hosts != nullptr;
        call.consecutive = hosts && hosts->contiguous;
        call.network = v.exchange->each_has_its_host();
    }
    call.multicast = v.cast != nullptr;
    return call;
}

CallParameters call_of(CollectiveKind kind, const View& v, int64_t count, const Datatype& type, const Op& op) {
    CallParameters call = call_of(kind, v, datatype::packed_size(type, count));
    call.commutative = op.commutative;
    return call;
}

/// Chooses the algorithm for a call and reports it to the profile. The operations that it calls are not steered.
const Algorithm& noted_choice(const CallParameters& call, View& v) {
    const Algorithm& algorithm = choose(v, call);
    note_choice(v, algorithm, call);
    v.steering = nullptr;
    return algorithm;
}

/// Starts the algorithm chosen for a call.
template <class Signature, class... Arguments>
Task chosen(const CallParameters& call, View v, const Arguments&... arguments) {
    const Algorithm& algorithm = noted_choice(call, v);
    return (*std::get_if<Signature*>(&algorithm.function))(v, arguments...);
}

/// Copies the input to the receive buffer: the whole work of a reduction over one rank.
Task copied(const void* send, void* receive, int64_t count, const Datatype& type) {
    if (input_of(send, receive) != receive && count > 0) datatype::copy(type, count, send, receive);
    return Task::completed(MPI_SUCCESS);
}

}  // namespace

Task barrier(View v) {
    if (v.n == 1) return Task::completed(v.error);
    know_cast(v);
    return chosen<signature::barrier>(call_of(CollectiveKind::barrier, v, 0), v);
}

Task bcast(View v, void* buffer, int64_t count, const Datatype& type, int root) {
    const uint64_t bytes = datatype::packed_size(type, count);
    if (v.n == 1 || bytes == 0) return Task::completed(v.error);
    know_cast(v);
    return chosen<signature::bcast>(call_of(CollectiveKind::bcast, v, bytes), v, buffer, count, type, root);
}

Task reduce(View v, const void* send, void* receive, int64_t count, const Datatype& type, const Op& op, int root) {
    if (count == 0) return Task::completed(v.error);
    if (v.n == 1) return copied(send, receive, count, type);
    return chosen<signature::reduce>(call_of(CollectiveKind::reduce, v, count, type, op), v, send, receive, count, type, op,
                                     root);
}

Task allreduce(View v, const void* send, void* receive, int64_t count, const Datatype& type, const Op& op) {
    if (count == 0) return Task::completed(v.error);
    if (v.n == 1) return copied(send, receive, count, type);
    know_cast(v);
    CallParameters call = call_of(CollectiveKind::allreduce, v, count, type, op);
    know_turns(v, call);
    return chosen<signature::allreduce>(call, v, send, receive, count, type, op);
}

Task gather(View v, const void* send, int64_t count, const Datatype& type, Blocks receive, int root) {
    // Members other than the root do not know whether the blocks are uniform, so the caller sets this in `receive`.
    CallParameters call{CollectiveKind::gather, v.n, v.me == root ? receive.bytes(root) : datatype::packed_size(type, count)};
    call.uniform = receive.uniform();
    return chosen<signature::gather>(call, v, send, count, type, receive, root);
}

Task scatter(View v, Blocks send, void* receive, int64_t count, const Datatype& type, int root) {
    CallParameters call{CollectiveKind::scatter, v.n, v.me == root ? send.bytes(root) : datatype::packed_size(type, count)};
    call.uniform = send.uniform();
    return chosen<signature::scatter>(call, v, send, receive, count, type, root);
}

Task allgather(View v, const void* send, int64_t count, const Datatype& type, Blocks receive) {
    const auto copy_own = [&] {
        if (send != MPI_IN_PLACE)
            v.note(datatype::copy(type, count, send, receive.type(v.me), receive.count(v.me), receive.at(v.me)));
    };
    if (v.n == 1) {
        copy_own();
        return Task::completed(v.error);
    }
    know_cast(v);
    CallParameters call = call_of(CollectiveKind::allgather, v, receive.bytes(0));
    call.uniform = receive.uniform();
    if (!call.uniform) {
        call.bytes = 0;
        for (int i = 0; i < v.n; ++i) call.bytes += receive.bytes(i);
        call.bytes /= static_cast<uint64_t>(v.n);
    } else if (call.bytes == 0) {
        return Task::completed(v.error);
    }
    know_turns(v, call);
    const Algorithm& algorithm = noted_choice(call, v);
    signature::allgather* const run = *std::get_if<signature::allgather*>(&algorithm.function);
    if (run == allgather_linear && send != MPI_IN_PLACE) return allgather_linear_from(v, send, count, type, receive);
    copy_own();
    return run(v, receive);
}

Task alltoall(View v, bool in_place, Blocks send, Blocks receive) {
    if (in_place) return alltoall_in_place(v, receive);
    CallParameters call{CollectiveKind::alltoall, v.n, receive.bytes(0)};
    call.network = v.network || v.exchange->each_has_its_host();
    call.uniform = receive.uniform();
    if (!call.uniform) call.bytes = 0;  // members may see different sizes, so the size must not affect the selection
    return chosen<signature::alltoall>(call, v, send, receive);
}

Task reduce_scatter(View v, const void* send, void* receive, Shares shares, const Datatype& type, const Op& op) {
    if (v.n == 1) return copied(send, receive, shares[0], type);
    return chosen<signature::reduce_scatter>(call_of(CollectiveKind::reduce_scatter, v, shares.total(v.n), type, op), v,
                                             input_of(send, receive), receive, shares, type, op);
}

Task scan(View v, const void* send, void* receive, int64_t count, const Datatype& type, const Op& op, bool exclusive) {
    if (count == 0) return Task::completed(v.error);
    if (v.n == 1) return exclusive ? Task::completed(v.error) : copied(send, receive, count, type);
    // Between hosts the number of rounds decides, even if some participants share a host. Within one, the chain sends fewer messages, and
    // the first ranks begin the next scan while the last ones still wait.
    CallParameters call = call_of(CollectiveKind::scan, v, count, type, op);
    call.network = v.network || v.exchange->hosts() || v.exchange->each_has_its_host();
    return chosen<signature::scan>(call, v, send, receive, count, type, op, exclusive);
}

}  // namespace starling::collective
