#include "mpi/coll/collective_tasks.h"

#include "mpi/common/buffer_overlap.h"

namespace starling::mpi {

namespace {

using collective::CommCall;
using collective::Shares;

/// Returns empty blocks for the buffer argument of a process that is not the root: the standard ignores that argument.
Blocks no_blocks(bool uniform, const Datatype& type) {
    return uniform ? Blocks(nullptr, 0, type) : Blocks(nullptr, Counts(nullptr), Counts(nullptr), type);
}

/// The role of this process in a rooted operation, which decides which arguments are significant.
struct RootRole {
    bool root, member;  ///< roles of this process; both false: its root argument is MPI_PROC_NULL
    RootRole(const CollectiveCall& call, int root_argument)
        : root(call.inter() ? root_argument == MPI_ROOT : root_argument == call.comm().rank),
          member(call.inter() ? root_argument >= 0 : true) {}
};

const Datatype& any_type() { return datatype::predefined(MPI_BYTE); }

}  // namespace

Task barrier_task(CollectiveCall& call) {
    if (!call.ok()) return {};
    return call.make([=](CommCall& to) { return collective::barrier(to); });
}

Task bcast_task(CollectiveCall& call, void* buffer, MPI_Count count, MPI_Datatype datatype, int root) {
    call.root(root);
    if (!call.ok()) return {};
    if (root == MPI_PROC_NULL) return call.make([=](CommCall& to) { return collective::no_part(to); });
    call.not_in_place(buffer);
    const Datatype* type = call.data(buffer, count, datatype);
    if (!call.ok()) return {};
    return call.make([=](CommCall& to) { return collective::bcast(to, buffer, count, *type, root); });
}

Task gather_task(CollectiveCall& call, const void* send, MPI_Count count, MPI_Datatype datatype, const BlockArguments& receive,
                 int root) {
    call.root(root);
    if (!call.ok()) return {};
    const RootRole role(call, root);
    const Datatype* type = &any_type();
    const Datatype* receive_type = nullptr;
    if (role.root) {
        call.not_in_place(receive.buffer);
        receive_type = receive.check(call, call.peers());
    }
    if (role.member) {
        if (!role.root) call.not_in_place(send);
        if (!call.in_place(send)) type = call.data(send, count, datatype);
    }
    if (!call.ok()) return {};
    if (!role.root && !role.member) return call.make([=](CommCall& to) { return collective::no_part(to); });
    const Blocks blocks = role.root ? receive.blocks(call, call.peers(), *receive_type) : no_blocks(receive.uniform, *type);
    if (role.root && role.member && send != MPI_IN_PLACE)
        call.not_aliased(overlap(TypedBuffer{send, count, *type}, blocks, call.peers()));
    if (!call.ok()) return {};
    return call.make([=](CommCall& to) { return collective::gather(to, send, count, *type, blocks, root); });
}

Task scatter_task(CollectiveCall& call, const BlockArguments& send, void* receive, MPI_Count count, MPI_Datatype datatype,
                  int root) {
    call.root(root);
    if (!call.ok()) return {};
    const RootRole role(call, root);
    const Datatype* type = &any_type();
    const Datatype* send_type = nullptr;
    if (role.root) {
        call.not_in_place(send.buffer);
        send_type = send.check(call, call.peers());
    }
    if (role.member) {
        if (!role.root) call.not_in_place(receive);
        if (!call.in_place(receive)) type = call.data(receive, count, datatype);
    }
    if (!call.ok()) return {};
    if (!role.root && !role.member) return call.make([=](CommCall& to) { return collective::no_part(to); });
    const Blocks blocks = role.root ? send.blocks(call, call.peers(), *send_type) : no_blocks(send.uniform, *type);
    if (role.root && role.member && receive != MPI_IN_PLACE)
        call.not_aliased(overlap(TypedBuffer{receive, count, *type}, blocks, call.peers()));
    if (!call.ok()) return {};
    return call.make([=](CommCall& to) { return collective::scatter(to, blocks, receive, count, *type, root); });
}

Task allgather_task(CollectiveCall& call, const void* send, MPI_Count count, MPI_Datatype datatype,
                    const BlockArguments& receive) {
    if (!call.ok()) return {};
    call.not_in_place(receive.buffer);
    const Datatype* receive_type = receive.check(call, call.peers());
    const Datatype* type = &any_type();
    const bool in_place = call.in_place(send);
    if (!in_place) type = call.data(send, count, datatype);
    if (!call.ok()) return {};
    const Blocks blocks = receive.blocks(call, call.peers(), *receive_type);
    if (!in_place) call.not_aliased(overlap(TypedBuffer{send, count, *type}, blocks, call.peers()));
    if (!call.ok()) return {};
    return call.make([=](CommCall& to) { return collective::allgather(to, send, count, *type, blocks); });
}

Task alltoall_task(CollectiveCall& call, const BlockArguments& send, const BlockArguments& receive) {
    if (!call.ok()) return {};
    call.not_in_place(receive.buffer);
    const Datatype* receive_type = receive.check(call, call.peers());
    const Datatype* send_type = receive_type;
    const bool in_place = call.in_place(send.buffer);
    if (!in_place) send_type = send.check(call, call.peers());
    if (!call.ok()) return {};
    const Blocks in = receive.blocks(call, call.peers(), *receive_type),
                 out = in_place ? in : send.blocks(call, call.peers(), *send_type);
    if (!in_place) call.not_aliased(overlap(out, in, call.peers()));
    if (!call.ok()) return {};
    return call.make([=](CommCall& to) { return collective::alltoall(to, in_place, out, in); });
}

Task alltoallw_task(CollectiveCall& call, const void* send, Counts send_counts, Counts send_displacements,
                    const MPI_Datatype send_types[], void* receive, Counts receive_counts, Counts receive_displacements,
                    const MPI_Datatype receive_types[]) {
    if (!call.ok()) return {};
    call.not_in_place(receive);
    const auto in_types = call.typed_blocks(call.peers(), receive, receive_counts, receive_displacements, receive_types, 0);
    const bool in_place = call.in_place(send);
    const auto out_types =
        in_place ? in_types : call.typed_blocks(call.peers(), send, send_counts, send_displacements, send_types, 1);
    if (!call.ok()) return {};
    const int n = call.peers();
    const Blocks in(receive, call.copy_array(receive_counts, n), call.copy_array(receive_displacements, n), in_types);
    const Blocks out =
        in_place ? in : Blocks(send, call.copy_array(send_counts, n), call.copy_array(send_displacements, n), out_types);
    if (!in_place) call.not_aliased(overlap(out, in, n));
    if (!call.ok()) return {};
    return call.make([=](CommCall& to) { return collective::alltoall(to, in_place, out, in); });
}

Task reduce_task(CollectiveCall& call, const void* send, void* receive, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                 int root) {
    call.root(root);
    if (!call.ok()) return {};
    const RootRole role(call, root);
    if (!role.root && !role.member) return call.make([=](CommCall& to) { return collective::no_part(to); });
    const Datatype* type = call.type(datatype);
    if (role.root) {
        call.not_in_place(receive);
        call.buffer(receive, count, datatype, type);
    }
    if (role.member) {
        if (!role.root) call.not_in_place(send);
        if (!call.in_place(send)) {
            call.buffer(send, count, datatype, type);
            if (role.root && call.ok()) call.not_aliased(overlap({send, count, *type}, {receive, count, *type}));
        }
    }
    const Op* operation = call.op(op, type);
    if (!call.ok()) return {};
    return call.make([=](CommCall& to) { return collective::reduce(to, send, receive, count, *type, *operation, root); });
}

namespace {

/// Checks the arguments common to all reductions without a root: `in` elements to send and `out` elements to receive, all of one type.
struct ReductionArguments {
    const Datatype* type;
    const Op* op;
    [[gnu::always_inline]] ReductionArguments(CollectiveCall& call, const void* send, MPI_Count in, void* receive,
                                              MPI_Count out, MPI_Datatype datatype, MPI_Op op_handle, bool receives = true)
        : type(call.type(datatype)) {
        const bool in_place = call.in_place(send);
        if (receives || in_place) {
            call.not_in_place(receive);
            call.buffer(receive, out, datatype, type);
        }
        if (!in_place) {
            call.buffer(send, in, datatype, type);
            if (call.ok() && receives) call.not_aliased(overlap({send, in, *type}, {receive, out, *type}));
        }
        op = call.op(op_handle, type);
    }
};

}  // namespace

Task allreduce_task(CollectiveCall& call, const void* send, void* receive, MPI_Count count, MPI_Datatype datatype, MPI_Op op) {
    const ReductionArguments checked(call, send, count, receive, count, datatype, op);
    if (!call.ok()) return {};
    return call.make([=](CommCall& to) { return collective::allreduce(to, send, receive, count, *checked.type, *checked.op); });
}

Task reduce_scatter_block_task(CollectiveCall& call, const void* send, void* receive, MPI_Count count, MPI_Datatype datatype,
                               MPI_Op op) {
    if (!call.ok()) return {};
    MPI_Count total;
    if (__builtin_mul_overflow(count, static_cast<MPI_Count>(call.comm().size), &total)) total = -1;
    const ReductionArguments checked(call, send, total, receive, count, datatype, op);
    if (!call.ok()) return {};
    return call.make(
        [=](CommCall& to) { return collective::reduce_scatter(to, send, receive, Shares(count), *checked.type, *checked.op); });
}

Task reduce_scatter_task(CollectiveCall& call, const void* send, void* receive, Counts counts, MPI_Datatype datatype,
                         MPI_Op op) {
    if (!call.ok()) return {};
    call.counts(counts, call.comm().size);
    if (!call.ok()) return {};
    const Shares shares(call.copy_array(counts, call.comm().size));
    const ReductionArguments checked(call, send, shares.total(call.comm().size), receive, counts[call.comm().rank], datatype,
                                     op);
    if (!call.ok()) return {};
    return call.make(
        [=](CommCall& to) { return collective::reduce_scatter(to, send, receive, shares, *checked.type, *checked.op); });
}

Task scan_task(CollectiveCall& call, const void* send, void* receive, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
               bool exclusive) {
    call.intra_only();
    // Rank 0 receives nothing in an exclusive scan, and its receive buffer is not significant (MPI 5.0 section 6.11.2).
    const bool receives = call.ok() && !(exclusive && call.comm().rank == 0);
    const ReductionArguments checked(call, send, count, receive, count, datatype, op, receives);
    if (!call.ok()) return {};
    return call.make(
        [=](CommCall& to) { return collective::scan(to, send, receive, count, *checked.type, *checked.op, exclusive); });
}

}  // namespace starling::mpi
