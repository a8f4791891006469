#include "mpi/collective_tasks.h"

#include "collective/buffers.h"
#include "collective/collective.h"
#include "collective/node_wide.h"
#include "collective/two_level_node.h"

namespace starling::mpi {

namespace {

using collective::input_of;
using collective::Kind;
using collective::Shares;

/// What stands for blocks that only the root has.
Blocks no_blocks(bool uniform, const Datatype& type) {
    return uniform ? Blocks(nullptr, 0, type) : Blocks(nullptr, Counts(nullptr), Counts(nullptr), type);
}

const Datatype* check_blocks(CollectiveCall& call, const BlockArguments& b) {
    return b.uniform ? call.data(b.buffer, b.count, b.type) : call.blocks(b.buffer, b.counts, b.displacements, b.type);
}

Blocks blocks_of(const BlockArguments& b, const Datatype& type) {
    return b.uniform ? Blocks(b.buffer, b.count, type) : Blocks(b.buffer, b.counts, b.displacements, type);
}

/// Which arguments of a rooted operation count here.
struct Role {
    bool root, member;  ///< neither: MPI_PROC_NULL
    Role(const CollectiveCall& call, int root_argument)
        : root(call.inter() ? root_argument == MPI_ROOT : root_argument == call.comm().rank),
          member(call.inter() ? root_argument >= 0 : true) {}
};

/// Root and members of a rooted operation as participants of the exchange.
struct Rooted {
    int me, root;
    collective::node::Range members;
    Rooted(const CollectiveCall& call, int root_argument) {
        const collective::Exchange& exchange = call.exchange();
        me = exchange.rank;
        if (!call.inter()) {
            root = root_argument;
            members = {0, exchange.size};
        } else if (root_argument == MPI_ROOT) {
            root = me;
            members = {exchange.remote_base, exchange.remote_base + exchange.remote_size};
        } else {
            root = exchange.remote_base + root_argument;
            members = {exchange.local_base, exchange.local_base + exchange.local_size};
        }
    }
};

/// The node stage for a rooted operation. In an inter-communicator those beside the root do not know
/// whether it serves the call, so every rooted operation counts in the node stage and takes a tag; they
/// skip_rooted().
collective::Node* rooted_node(CollectiveCall& call, Kind kind, uint64_t bytes, bool uniform = true, bool pieces = false) {
    collective::Node* node = call.node_for(kind, bytes, uniform, pieces);
    if (!call.inter()) return node;
    if (node)
        call.view();
    else if (call.node())
        call.node()->skip();
    return node;
}
Task skip_rooted(CollectiveCall& call) {
    call.view();
    return call.finished(call.node() ? call.node()->skip() : MPI_SUCCESS);
}

/// Whether the node stage may reduce elements of this type piece by piece.
bool in_pieces(const Datatype& type) { return type.size <= collective::node::kMostElement; }

const Datatype& any_type() { return datatype::predefined(MPI_BYTE); }

}  // namespace

Task barrier_task(CollectiveCall& call) {
    if (!call.ok()) return {};
    if (collective::Node* node = call.node_for(Kind::barrier, 0)) return call.finished(node->barrier());
    if (collective::Node* part = call.part_for(Kind::barrier, 0))
        return call.finished(collective::two_level::barrier(*part, call.view()));
    return call.inter() ? collective::inter::barrier(call.view()) : collective::barrier(call.view());
}

Task bcast_task(CollectiveCall& call, void* buffer, MPI_Count count, MPI_Datatype datatype, int root) {
    call.root(root);
    if (!call.ok()) return {};
    if (root == MPI_PROC_NULL && call.blocking()) return skip_rooted(call);
    if (root == MPI_PROC_NULL) return collective::inter::bcast(call.view(), nullptr, 0, any_type(), root);
    call.not_in_place(buffer);
    const Datatype* type = call.data(buffer, count, datatype);
    if (!call.ok()) return {};
    const uint64_t bytes = datatype::packed_size(*type, count);
    const bool pieces = !call.inter() || collective::node::fits_room(call.exchange().size, bytes);
    if (collective::Node* node = rooted_node(call, Kind::bcast, bytes, true, pieces)) {
        const Rooted r(call, root);
        return call.finished(collective::node::bcast(*node, r.root, r.members.has(r.me), buffer, count, *type, call.inter()));
    }
    if (collective::Node* part = call.part_for(Kind::bcast, bytes))
        return call.finished(collective::two_level::bcast(*part, call.view(), buffer, count, *type, root));
    return call.inter() ? collective::inter::bcast(call.view(), buffer, count, *type, root)
                        : collective::bcast(call.view(), buffer, count, *type, root);
}

Task gather_task(CollectiveCall& call, const void* send, MPI_Count count, MPI_Datatype datatype, const BlockArguments& receive,
                 int root) {
    call.root(root);
    if (!call.ok()) return {};
    const Role role(call, root);
    const Datatype* type = &any_type();
    const Datatype* receive_type = nullptr;
    if (role.root) {
        call.not_in_place(receive.buffer);
        receive_type = check_blocks(call, receive);
    }
    if (role.member) {
        if (!role.root) call.not_in_place(send);
        if (!call.in_place(send)) type = call.data(send, count, datatype);
        if (role.root) call.not_aliased(send, receive.buffer, count);
    }
    if (!call.ok()) return {};
    if (!role.root && !role.member && call.blocking()) return skip_rooted(call);
    const Blocks blocks = role.root ? blocks_of(receive, *receive_type) : no_blocks(receive.uniform, *type);
    const uint64_t block = role.root ? blocks.bytes(0) : datatype::packed_size(*type, count);
    if (collective::Node* node = rooted_node(call, Kind::gather, block, receive.uniform)) {
        const Rooted r(call, root);
        return call.finished(collective::node::gather(*node, r.root, r.me, r.members, send, count, *type, blocks));
    }
    return call.inter() ? collective::inter::gather(call.view(), send, count, *type, blocks, root)
                        : collective::gather(call.view(), send, count, *type, blocks, root);
}

Task scatter_task(CollectiveCall& call, const BlockArguments& send, void* receive, MPI_Count count, MPI_Datatype datatype,
                  int root) {
    call.root(root);
    if (!call.ok()) return {};
    const Role role(call, root);
    const Datatype* type = &any_type();
    const Datatype* send_type = nullptr;
    if (role.root) {
        call.not_in_place(send.buffer);
        send_type = check_blocks(call, send);
    }
    if (role.member) {
        if (!role.root) call.not_in_place(receive);
        if (!call.in_place(receive)) type = call.data(receive, count, datatype);
        if (role.root) call.not_aliased(send.buffer, receive, count);
    }
    if (!call.ok()) return {};
    if (!role.root && !role.member && call.blocking()) return skip_rooted(call);
    const Blocks blocks = role.root ? blocks_of(send, *send_type) : no_blocks(send.uniform, *type);
    const uint64_t block = role.root ? blocks.bytes(0) : datatype::packed_size(*type, count);
    if (collective::Node* node = rooted_node(call, Kind::scatter, block, send.uniform)) {
        const Rooted r(call, root);
        return call.finished(collective::node::scatter(*node, r.root, r.me, r.members, blocks, receive, count, *type));
    }
    return call.inter() ? collective::inter::scatter(call.view(), blocks, receive, count, *type, root)
                        : collective::scatter(call.view(), blocks, receive, count, *type, root);
}

Task allgather_task(CollectiveCall& call, const void* send, MPI_Count count, MPI_Datatype datatype,
                    const BlockArguments& receive) {
    if (!call.ok()) return {};
    call.not_in_place(receive.buffer);
    const Datatype* receive_type = check_blocks(call, receive);
    const Datatype* type = &any_type();
    if (!call.in_place(send)) {
        type = call.data(send, count, datatype);
        call.not_aliased(send, receive.buffer, count);
    }
    if (!call.ok()) return {};
    const Blocks blocks = blocks_of(receive, *receive_type);
    const uint64_t mine = send == MPI_IN_PLACE ? 0 : datatype::packed_size(*type, count);
    const uint64_t longest = std::max(mine, blocks.bytes(0));
    if (collective::Node* node = call.node_for(Kind::allgather, longest, receive.uniform, true))
        return call.finished(collective::node::allgather(*node, call.exchange(), send, count, *type, blocks));
    return call.inter() ? collective::inter::allgather(call.view(), send, count, *type, blocks)
                        : collective::allgather(call.view(), send, count, *type, blocks);
}

Task alltoall_task(CollectiveCall& call, const BlockArguments& send, const BlockArguments& receive) {
    if (!call.ok()) return {};
    call.not_in_place(receive.buffer);
    const Datatype* receive_type = check_blocks(call, receive);
    const Datatype* send_type = receive_type;
    const bool in_place = call.in_place(send.buffer);
    if (!in_place) {
        send_type = check_blocks(call, send);
        if (send.uniform) call.not_aliased(send.buffer, receive.buffer, send.count);
    }
    if (!call.ok()) return {};
    const Blocks in = blocks_of(receive, *receive_type), out = in_place ? in : blocks_of(send, *send_type);
    if (!call.inter())
        if (collective::Node* node = call.node_for(Kind::alltoall, in.bytes(0), receive.uniform, true))
            return call.finished(collective::node::alltoall(*node, call.comm().rank, call.comm().size, out, in));
    return call.inter() ? collective::inter::alltoall(call.view(), out, in)
                        : collective::alltoall(call.view(), in_place, out, in);
}

Task alltoallw_task(CollectiveCall& call, const void* send, Counts send_counts, Counts send_displacements,
                    const MPI_Datatype send_types[], void* receive, Counts receive_counts, Counts receive_displacements,
                    const MPI_Datatype receive_types[]) {
    if (!call.ok()) return {};
    call.not_in_place(receive);
    const auto in_types = call.typed_blocks(receive, receive_counts, receive_displacements, receive_types, 0);
    const bool in_place = call.in_place(send);
    const auto out_types = in_place ? in_types : call.typed_blocks(send, send_counts, send_displacements, send_types, 1);
    if (!call.ok()) return {};
    const Blocks in(receive, receive_counts, receive_displacements, in_types);
    const Blocks out = in_place ? in : Blocks(send, send_counts, send_displacements, out_types);
    return call.inter() ? collective::inter::alltoall(call.view(), out, in)
                        : collective::alltoall(call.view(), in_place, out, in);
}

Task reduce_task(CollectiveCall& call, const void* send, void* receive, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                 int root) {
    call.root(root);
    if (!call.ok()) return {};
    const Role role(call, root);
    if (!role.root && !role.member && call.blocking()) return skip_rooted(call);
    if (!role.root && !role.member)
        return collective::inter::reduce(call.view(), nullptr, nullptr, 0, any_type(), datatype::predefined(MPI_SUM), root);
    const Datatype* type = call.type(datatype);
    if (role.root) {
        call.not_in_place(receive);
        call.buffer(receive, count, datatype, type);
    }
    if (role.member) {
        if (!role.root) call.not_in_place(send);
        if (!call.in_place(send)) call.buffer(send, count, datatype, type);
        if (role.root) call.not_aliased(send, receive, count);
    }
    const Op* operation = call.op(op, type);
    if (!call.ok()) return {};
    if (collective::Node* node =
            rooted_node(call, Kind::reduce, datatype::packed_size(*type, count), true, !call.inter() && in_pieces(*type))) {
        const Rooted r(call, root);
        return call.finished(
            collective::node::reduce(*node, r.root, r.members, input_of(send, receive), receive, count, *type, *operation));
    }
    if (collective::Node* part = call.part_for(Kind::reduce, datatype::packed_size(*type, count), operation->commutative))
        return call.finished(collective::two_level::reduce(*part, call.view(), input_of(send, receive), receive, count, *type,
                                                           *operation, root));
    return call.inter() ? collective::inter::reduce(call.view(), send, receive, count, *type, *operation, root)
                        : collective::reduce(call.view(), send, receive, count, *type, *operation, root);
}

namespace {

/// Checks what all reductions to all have: `in` and `out` elements of one type.
struct ReductionArguments {
    const Datatype* type;
    const Op* op;
    ReductionArguments(CollectiveCall& call, const void* send, MPI_Count in, void* receive, MPI_Count out,
                       MPI_Datatype datatype, MPI_Op op_handle)
        : type(call.type(datatype)) {
        call.not_in_place(receive);
        call.buffer(receive, out, datatype, type);
        if (!call.in_place(send)) {
            call.buffer(send, in, datatype, type);
            call.not_aliased(send, receive, in < out ? in : out);
        }
        op = call.op(op_handle, type);
    }
};

}  // namespace

Task allreduce_task(CollectiveCall& call, const void* send, void* receive, MPI_Count count, MPI_Datatype datatype, MPI_Op op) {
    const ReductionArguments checked(call, send, count, receive, count, datatype, op);
    if (!call.ok()) return {};
    if (collective::Node* node =
            call.node_for(Kind::allreduce, datatype::packed_size(*checked.type, count), true, in_pieces(*checked.type)))
        return call.finished(collective::node::allreduce(*node, call.exchange(), input_of(send, receive), receive, count,
                                                         *checked.type, *checked.op));
    if (collective::Node* part =
            call.part_for(Kind::allreduce, datatype::packed_size(*checked.type, count), checked.op->commutative))
        return call.finished(collective::two_level::allreduce(*part, call.view(), input_of(send, receive), receive, count,
                                                              *checked.type, *checked.op));
    return call.inter() ? collective::inter::allreduce(call.view(), send, receive, count, *checked.type, *checked.op)
                        : collective::allreduce(call.view(), send, receive, count, *checked.type, *checked.op);
}

namespace {

/// Both forms of reduce_scatter, after their checks.
Task scatter_reduced(CollectiveCall& call, const void* send, void* receive, const Shares& shares,
                     const ReductionArguments& checked) {
    const Datatype& type = *checked.type;
    const uint64_t bytes = datatype::packed_size(type, shares.total(call.comm().size));
    if (collective::Node* node = call.node_for(Kind::reduce_scatter, bytes, true, in_pieces(type)))
        return call.finished(collective::node::reduce_scatter(*node, call.exchange(), input_of(send, receive), receive, shares,
                                                              type, *checked.op));
    return call.inter() ? collective::inter::reduce_scatter(call.view(), send, receive, shares, type, *checked.op)
                        : collective::reduce_scatter(call.view(), send, receive, shares, type, *checked.op);
}

}  // namespace

Task reduce_scatter_block_task(CollectiveCall& call, const void* send, void* receive, MPI_Count count, MPI_Datatype datatype,
                               MPI_Op op) {
    if (!call.ok()) return {};
    MPI_Count total;
    if (__builtin_mul_overflow(count, static_cast<MPI_Count>(call.comm().size), &total)) total = -1;
    const ReductionArguments checked(call, send, total, receive, count, datatype, op);
    if (!call.ok()) return {};
    return scatter_reduced(call, send, receive, Shares(count), checked);
}

Task reduce_scatter_task(CollectiveCall& call, const void* send, void* receive, Counts counts, MPI_Datatype datatype,
                         MPI_Op op) {
    if (!call.ok()) return {};
    call.counts(counts, call.comm().size);
    if (!call.ok()) return {};
    const Shares shares(counts);
    const ReductionArguments checked(call, send, shares.total(call.comm().size), receive, counts[call.comm().rank], datatype,
                                     op);
    if (!call.ok()) return {};
    return scatter_reduced(call, send, receive, shares, checked);
}

Task scan_task(CollectiveCall& call, const void* send, void* receive, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
               bool exclusive) {
    call.intra_only();
    const ReductionArguments checked(call, send, count, receive, count, datatype, op);
    if (!call.ok()) return {};
    return collective::scan(call.view(), send, receive, count, *checked.type, *checked.op, exclusive);
}

}  // namespace starling::mpi
