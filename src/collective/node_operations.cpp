#include "collective/node_operations.h"

#include "collective/buffers.h"

namespace starling::collective::node {

namespace {

uint32_t kind_of(Kind kind, int root = 0) {
    return (static_cast<uint32_t>(kind) + 1) << 16 | static_cast<uint32_t>(root);
}

uint32_t bytes_of(const Datatype& type, int64_t count) {
    return static_cast<uint32_t>(datatype::packed_size(type, count));
}

void pack(const Datatype& type, int64_t count, const void* buffer, std::byte* out) {
    datatype::pack_for_another_core(type, count, buffer, 0, out, datatype::packed_size(type, count));
}
void unpack(const Datatype& type, int64_t count, void* buffer, const std::byte* in) {
    datatype::unpack(type, count, buffer, 0, in, datatype::packed_size(type, count));
}

/// result = slot(first) ∘ … ∘ slot(last - 1), from packed operands. `result` is a buffer of the type.
template <class Slot>
int fold(Slot slot, Range range, void* result, int64_t count, const Datatype& type, const Op& op) {
    int next = range.last - 1;
    if (!datatype::is_block(type, count)) {
        Temporary operand(type, count);
        unpack(type, count, result, slot(next));
        while (--next >= range.first) {
            unpack(type, count, operand.data(), slot(next));
            if (const int error = datatype::apply(op, operand.data(), result, count, type)) return error;
        }
        return MPI_SUCCESS;
    }
    // Packed operands are what buffers of the type hold from true_lb on.
    const auto operand = [&](int i) { return slot(i) - type.true_lb; };
    if (next == range.first) {
        pack(type, count, operand(next), static_cast<std::byte*>(datatype::block_address(type, result)));
        return MPI_SUCCESS;
    }
    --next;
    int error = datatype::apply_to(op, operand(next), operand(next + 1), result, count, type);
    while (error == MPI_SUCCESS && --next >= range.first)
        error = datatype::apply(op, operand(next), result, count, type);
    return error;
}

/// The same with a packed result.
template <class Slot>
int fold_packed(Slot slot, Range range, std::byte* result, int64_t count, const Datatype& type,
                const Op& op) {
    if (datatype::is_block(type, count)) return fold(slot, range, result - type.true_lb, count, type, op);
    Temporary unpacked(type, count);
    const int error = fold(slot, range, unpacked.data(), count, type, op);
    pack(type, count, unpacked.data(), result);
    return error;
}

}  // namespace

int arrive(Node& node, int n) {
    return node.to_root(kind_of(Kind::barrier), 0, 0, n, 0, [](std::byte*) {}, [](auto) {});
}

int release(Node& node, int me) {
    return node.bcast(kind_of(Kind::barrier), 0, me != 0, 0, [](std::byte*) {}, [](const std::byte*) {});
}

void give_up(Node& node, int root) {
    node.bcast(Node::kFailed, root, false, 0, [](std::byte*) {}, [](const std::byte*) {});
}

int bcast(Node& node, int root, bool reads, void* buffer, int64_t count, const Datatype& type) {
    return node.bcast(
        kind_of(Kind::bcast, root), root, reads, bytes_of(type, count),
        // Not past the caches: so little, and used again so soon, is faster from one to the other (measured).
        [&](std::byte* payload) { datatype::pack(type, count, buffer, 0, payload, bytes_of(type, count)); },
        [&](const std::byte* payload) { unpack(type, count, buffer, payload); });
}

int reduce(Node& node, int root, Range range, const void* input, void* receive, int64_t count,
           const Datatype& type, const Op& op) {
    int error = MPI_SUCCESS;
    const int stage_error = node.to_root(
        kind_of(Kind::reduce, root), root, range.first, range.last, bytes_of(type, count),
        [&](std::byte* payload) { pack(type, count, input, payload); },
        [&](auto slot) { error = fold(slot, range, receive, count, type, op); });
    return stage_error ? stage_error : error;
}

int allreduce(Node& node, const Exchange& exchange, const void* input, void* receive, int64_t count,
              const Datatype& type, const Op& op) {
    const uint32_t bytes = bytes_of(type, count);
    const auto write = [&](std::byte* payload) { pack(type, count, input, payload); };
    const bool inter = exchange.inter();
    const Range mine = inter ? Range{exchange.remote_base, exchange.remote_base + exchange.remote_size}
                             : Range{0, exchange.size};
    if (node.few()) {
        int error = MPI_SUCCESS;
        const int stage_error = node.to_all(kind_of(Kind::allreduce), bytes, write, [&](auto slot) {
            error = fold(slot, mine, receive, count, type, op);
        });
        return stage_error ? stage_error : error;
    }
    // The low side's reduction lies first, the high side's half a buffer behind.
    constexpr uint32_t kHalf = NodeLayout::kRingPayload / 2 / 16 * 16;
    const int low =
        inter ? (exchange.local_base == 0 ? exchange.local_size : exchange.remote_size) : exchange.size;
    return node.combine(
        kind_of(Kind::allreduce), bytes, write,
        [&](auto slot, std::byte* result) {
            int error = fold_packed(slot, Range{0, low}, result, count, type, op);
            if (inter && error == MPI_SUCCESS)
                error = fold_packed(slot, Range{low, exchange.size}, result + kHalf, count, type, op);
            return error;
        },
        [&](const std::byte* result) {
            unpack(type, count, receive, mine.first == 0 ? result : result + kHalf);
        });
}

int gather(Node& node, int root, int me, Range range, const void* send, int64_t count, const Datatype& type,
           const Blocks& receive) {
    const bool in_place = send == MPI_IN_PLACE;
    const auto bytes =
        static_cast<uint32_t>(me == root ? receive.bytes(0) : datatype::packed_size(type, count));
    return node.to_root(
        kind_of(Kind::gather, root), root, range.first, range.last, bytes,
        [&](std::byte* payload) {
            if (!in_place) pack(type, count, send, payload);
        },
        [&](auto slot) {
            for (int i = range.first; i < range.last; ++i) {
                const int rank = i - range.first;
                if (!(in_place && i == me))
                    unpack(receive.type(rank), receive.count(rank), receive.at(rank), slot(i));
            }
        });
}

int scatter(Node& node, int root, int me, Range range, const Blocks& send, void* receive, int64_t count,
            const Datatype& type) {
    const auto block =
        static_cast<uint32_t>(me == root ? send.bytes(0) : datatype::packed_size(type, count));
    const int error = node.bcast(
        kind_of(Kind::scatter, root), root, range.has(me), block,
        [&](std::byte* payload) {
            for (int i = 0; i < range.last - range.first; ++i, payload += block)
                pack(send.type(i), send.count(i), send.at(i), payload);
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

int allgather(Node& node, int me, int n, const void* send, int64_t count, const Datatype& type,
              const Blocks& receive) {
    const bool in_place = send == MPI_IN_PLACE;
    const auto bytes = static_cast<uint32_t>(receive.bytes(0));
    return node.to_all(
        kind_of(Kind::allgather), bytes,
        [&](std::byte* payload) {
            if (in_place)
                pack(receive.type(me), receive.count(me), receive.at(me), payload);
            else
                datatype::pack_for_another_core(type, count, send, 0, payload, bytes);
        },
        [&](auto slot) {
            for (int i = 0; i < n; ++i)
                if (!(in_place && i == me))
                    unpack(receive.type(i), receive.count(i), receive.at(i), slot(i));
        });
}

int alltoall(Node& node, int me, int n, const Blocks& send, const Blocks& receive) {
    const auto block = static_cast<uint32_t>(receive.bytes(0));
    return node.to_all(
        kind_of(Kind::alltoall), block,
        [&](std::byte* payload) {
            for (int i = 0; i < n; ++i, payload += block)
                datatype::pack_for_another_core(send.type(i), send.count(i), send.at(i), 0, payload, block);
        },
        [&](auto slot) {
            for (int i = 0; i < n; ++i)
                unpack(receive.type(i), receive.count(i), receive.at(i),
                       slot(i) + static_cast<size_t>(me) * block);
        });
}

}  // namespace starling::collective::node
