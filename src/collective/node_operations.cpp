#include "collective/node_operations.h"

#include "collective/node_fold.h"
#include "collective/node_wide.h"
#include "progress/idle.h"

namespace starling::collective::node {

namespace {

constexpr uint64_t kFoldedByAll = 16 * 1024;
/// A piece of a broadcast among few: they read one while the root writes the next.
constexpr uint64_t kBcastPiece = 16 * 1024;

bool fits_slot(const Node& node, uint64_t bytes) { return bytes <= NodeLayout::slot_payload(node.participants()); }

}  // namespace

int arrive(Node& node, int n) {
    return node.to_root(
        kind_of(Kind::barrier), 0, 0, n, 0, [](std::byte*) {}, [](auto) {});
}

int release(Node& node, int me) {
    return node.bcast(
        kind_of(Kind::barrier), 0, me != 0, 0, [](std::byte*) {}, [](const std::byte*) {});
}

void give_up(Node& node, int root) {
    node.bcast(
        Node::kFailed, root, false, 0, [](std::byte*) {}, [](const std::byte*) {});
}

bool fits_room(int participants, uint64_t bytes) { return bytes <= NodeLayout::wide_payload(participants); }

int bcast(Node& node, int root, bool reads, void* buffer, int64_t count, const Datatype& type, bool in_one) {
    const uint64_t total = datatype::packed_size(type, count);
    if (total <= NodeLayout::kRingPayload)
        return node.bcast(
            kind_of(Kind::bcast, root), root, reads, static_cast<uint32_t>(total),
            [&](std::byte* payload) { pack(node, type, count, buffer, payload); },
            [&](const std::byte* payload) { unpack(type, count, buffer, payload); });
    const uint64_t most = in_one || !node.few() ? NodeLayout::wide_payload(node.participants()) : kBcastPiece;
    int error = MPI_SUCCESS;
    for (uint64_t from = 0; error == MPI_SUCCESS && from < total; from += most) {
        const uint64_t bytes = std::min(total - from, most);
        // On a crowded core readers had better come once, when all is there.
        const bool more =
            from + bytes < total && from / most % (NodeLayout::kRingBuffers / 2) != 0 && progress::core_is_crowded();
        error = node.bcast_wide(
            kind_of(Kind::bcast, root), root, reads, static_cast<uint32_t>(bytes),
            [&](std::byte* room) {
                datatype::pack(node.sync().copies, type, count, buffer, from, room, bytes, node.sync().into_room);
            },
            [&](const std::byte* room) { datatype::unpack(type, count, buffer, from, room, bytes); }, more);
    }
    return error;
}

int reduce(Node& node, int root, Range range, const void* input, void* receive, int64_t count, const Datatype& type,
           const Op& op) {
    if (!fits_slot(node, datatype::packed_size(type, count)))
        return reduce_wide(node, kind_of(Kind::reduce, root), Summands(node.participants()), input,
                           Share{receive, 0, node.me() == root ? count : 0}, count, type, op);
    int error = MPI_SUCCESS;
    const int stage_error = node.to_root(
        kind_of(Kind::reduce, root), root, range.first, range.last, bytes_of(type, count),
        [&](std::byte* payload) { pack(node, type, count, input, payload); },
        [&](auto slot) { error = fold(slot, range, receive, count, type, op); });
    return stage_error ? stage_error : error;
}

int allreduce(Node& node, const Exchange& exchange, const void* input, void* receive, int64_t count, const Datatype& type,
              const Op& op) {
    const uint64_t total = datatype::packed_size(type, count);
    const bool fits = fits_slot(node, total);
    // Up to here it is faster for all to do all the work than to meet once more.
    const bool at_once = node.few() && !exchange.inter() && total * static_cast<uint64_t>(exchange.size) <= kFoldedByAll;
    const Summands summands(exchange);
    if (!fits && !at_once)
        return reduce_wide(node, kind_of(Kind::allreduce), summands, input, Share{receive, 0, count}, count, type, op);
    const auto bytes = static_cast<uint32_t>(total);
    const auto write = [&](std::byte* payload) { pack(node, type, count, input, payload); };
    if (node.few()) {
        int error = MPI_SUCCESS;
        const auto read = [&](auto slot) { error = fold(slot, summands.theirs(), receive, count, type, op); };
        const int stage_error = fits ? node.to_all(kind_of(Kind::allreduce), bytes, write, read)
                                     : node.to_all_wide(kind_of(Kind::allreduce), bytes, bytes, write, read);
        return stage_error ? stage_error : error;
    }
    // The low side's reduction lies first, the high side's half a buffer behind.
    constexpr size_t kHalf = NodeLayout::kRingPayload / 2;
    return node.combine(
        kind_of(Kind::allreduce), bytes, write,
        [&](auto slot, std::byte* result) {
            int error = MPI_SUCCESS;
            for (int i = 0; i < summands.groups && error == MPI_SUCCESS; ++i)
                error = fold_packed(node, slot, summands.group[i], result + static_cast<size_t>(i) * kHalf, count, type, op);
            return error;
        },
        [&](const std::byte* result) { unpack(type, count, receive, result + static_cast<size_t>(summands.wanted) * kHalf); });
}

int reduce_scatter(Node& node, const Exchange& exchange, const void* input, void* receive, const Shares& shares,
                   const Datatype& type, const Op& op) {
    const int rank = exchange.rank - exchange.local_base;
    const int64_t first = shares.total(rank);
    return reduce_wide(node, kind_of(Kind::reduce_scatter), Summands(exchange), input,
                       Share{receive, first, first + shares[rank]}, shares.total(exchange.local_size), type, op);
}

int gather(Node& node, int root, int me, Range range, const void* send, int64_t count, const Datatype& type,
           const Blocks& receive) {
    const bool in_place = send == MPI_IN_PLACE;
    const auto bytes = static_cast<uint32_t>(me == root ? receive.bytes(0) : datatype::packed_size(type, count));
    return node.to_root(
        kind_of(Kind::gather, root), root, range.first, range.last, bytes,
        [&](std::byte* payload) {
            if (!in_place) pack(node, type, count, send, payload);
        },
        [&](auto slot) {
            for (int i = range.first; i < range.last; ++i) {
                const int rank = i - range.first;
                if (!(in_place && i == me)) unpack(receive.type(rank), receive.count(rank), receive.at(rank), slot(i));
            }
        });
}

int scatter(Node& node, int root, int me, Range range, const Blocks& send, void* receive, int64_t count, const Datatype& type) {
    const auto block = static_cast<uint32_t>(me == root ? send.bytes(0) : datatype::packed_size(type, count));
    const int error = node.bcast(
        kind_of(Kind::scatter, root), root, range.has(me), block,
        [&](std::byte* payload) {
            for (int i = 0; i < range.last - range.first; ++i, payload += block)
                pack(node, send.type(i), send.count(i), send.at(i), payload);
        },
        [&](const std::byte* payload) {
            unpack(type, count, receive, payload + static_cast<size_t>(me - range.first) * block);
        });
    if (error == MPI_SUCCESS && me == root && range.has(me) && receive != MPI_IN_PLACE) {
        const int mine = me - range.first;
        return datatype::copy(send.type(mine), send.count(mine), send.at(mine), type, count, receive);
    }
    return error;
}

int allgather(Node& node, const Exchange& exchange, const void* send, int64_t count, const Datatype& type,
              const Blocks& receive) {
    const Gathering gathering(exchange, send, count, type, receive);
    if (!fits_slot(node, gathering.longest())) return allgather_wide(node, gathering);
    return node.to_all(
        kind_of(Kind::allgather), [&](int i) { return static_cast<uint32_t>(gathering.bytes(i)); },
        [&](std::byte* payload) { gathering.write(node, 0, gathering.mine, payload); },
        [&](auto slot) { gathering.read(slot, 0, gathering.theirs); });
}

int alltoall(Node& node, int me, int n, const Blocks& send, const Blocks& receive) {
    if (!fits_slot(node, receive.bytes(0) * static_cast<uint64_t>(n))) return alltoall_wide(node, send, receive);
    const auto block = static_cast<uint32_t>(receive.bytes(0));
    return node.to_all(
        kind_of(Kind::alltoall), block,
        [&](std::byte* payload) {
            for (int i = 0; i < n; ++i, payload += block) pack(node, send.type(i), send.count(i), send.at(i), payload);
        },
        [&](auto slot) {
            for (int i = 0; i < n; ++i)
                unpack(receive.type(i), receive.count(i), receive.at(i), slot(i) + static_cast<size_t>(me) * block);
        });
}

}  // namespace starling::collective::node
