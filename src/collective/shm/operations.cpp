#include "collective/shm/operations.h"

#include <algorithm>

#include "collective/shm/local_reduction.h"
#include "collective/shm/pipelined.h"
#include "collective/shm/protocols.h"
#include "mpi-ext.h"
#include "progress/blocking_wait.h"

namespace starling::collective::node {

namespace {

constexpr uint64_t kFoldedByAll = 16 * 1024;
/// Most bytes of an operand up to which each of two participants does the whole reduction. The second meeting that this avoids costs 0.2 us
/// with a common cache and 0.5 us between distant cores; with longer operands, adding twice as many elements costs more.
constexpr uint64_t kFoldedByTwo = 64 * 1024;
/// Least bytes per piece of a broadcast among few participants, which read one piece while the root writes the next.
constexpr uint64_t kBcastPiece = 16 * 1024;

/// Returns the most bytes per piece of a broadcast among few participants. A broadcast takes the time of one copy, plus that of its longest
/// piece, plus a cost per piece. All members must choose the same lengths, so these depend on the total only, and not on the distance
/// between the cores.
uint64_t most_per_piece(uint64_t total) {
    if (total >= 1024 * 1024) return 4 * kBcastPiece;
    return total >= 256 * 1024 ? 2 * kBcastPiece : kBcastPiece;
}

bool fits_slot(const EngineStage& node, uint64_t bytes) { return bytes <= NodeLayout::slot_payload(node.participants()); }

/// The data of one half of a barrier: none.
struct Nothing {
    static uint32_t bytes() { return 0; }
    static uint32_t room_bytes() { return 0; }
    static void write(EngineSync&, std::byte*) {}
    static int read(auto) { return MPI_SUCCESS; }
};

struct Broadcast {
    void* buffer;
    int64_t count;
    const Datatype& type;
    uint32_t bytes() const { return bytes_of(type, count); }
    uint32_t room_bytes() const { return bytes(); }
    void write(EngineSync& sync, std::byte* payload) const { pack(sync, type, count, buffer, payload); }
    int read(const std::byte* payload) const {
        unpack(type, count, buffer, payload);
        return MPI_SUCCESS;
    }
};

struct BroadcastPieces {
    void* buffer;
    int64_t count;
    const Datatype& type;
    uint64_t most, least, total = datatype::packed_size(type, count), from = 0;
    uint64_t pieces = 0;  ///< number of pieces before this one

    // The last pieces are short, because the root does nothing while the last one is read.
    uint32_t bytes() const {
        const uint64_t rest = total - from, half = rest / 2 / least * least;
        return static_cast<uint32_t>(std::min({rest, most, std::max(least, half)}));
    }
    // Returns whether more pieces follow at once. On a crowded core, readers are better scheduled once, when half of the ring is written.
    bool more() const {
        return from + bytes() < total && pieces % (NodeLayout::kRingBuffers / 2) != 0 && progress::core_is_crowded();
    }
    void write(EngineSync& sync, std::byte* room) const {
        datatype::pack(sync.copies, type, count, buffer, from, room, bytes(), sync.into_room);
    }
    int read(const std::byte* room) const {
        datatype::unpack(type, count, buffer, from, room, bytes());
        return MPI_SUCCESS;
    }
    bool next(int error) {
        from += bytes();
        ++pieces;
        return error == MPI_SUCCESS && from < total;
    }
};

/// Operands of a reduction that fit into slots.
struct SlotOperands {
    const void* input;
    void* receive;
    int64_t count;
    const Datatype& type;
    const Op& op;
    ParticipantRange range;  ///< participants whose operands are reduced
    uint32_t size = bytes_of(type, count);

    uint32_t bytes() const { return size; }
    uint32_t bytes(int) const { return size; }
    uint32_t room_bytes() const { return size; }
    void write(EngineSync& sync, std::byte* payload) const { pack(sync, type, count, input, payload); }
    int read(auto slot) const { return fold(slot, range, receive, count, type, op); }
};

/// A reduction that the last participant to arrive computes for all. Between groups there are two results: that of the group with the lower
/// participant numbers comes first in the buffer, the other one begins on a new cache line.
struct Sums {
    const void* input;
    void* receive;
    int64_t count;
    const Datatype& type;
    const Op& op;
    Operands summands;

    uint32_t bytes() const { return bytes_of(type, count); }
    uint32_t room_bytes() const { return bytes(); }
    size_t place(int group) const {
        return static_cast<size_t>(group) *
               ((bytes() + sizeof(NodeLayout::StageLine) - 1) & ~(sizeof(NodeLayout::StageLine) - 1));
    }
    void write(EngineSync& sync, std::byte* payload) const { pack(sync, type, count, input, payload); }
    int combine(EngineSync& sync, auto slot, std::byte* result) const {
        int error = MPI_SUCCESS;
        for (int i = 0; i < summands.groups && error == MPI_SUCCESS; ++i)
            error = fold_packed(sync, slot, summands.group[i], result + place(i), count, type, op);
        return error;
    }
    int read(const std::byte* result) const {
        unpack(type, count, receive, result + place(summands.wanted));
        return MPI_SUCCESS;
    }
};

struct Gathers {
    PipelinedGather gathering;
    uint32_t bytes(int participant) const { return static_cast<uint32_t>(gathering.bytes(participant)); }
    uint64_t room_bytes() const { return gathering.longest(); }
    void write(EngineSync& sync, std::byte* payload) const { gathering.write(sync, 0, gathering.mine, payload); }
    int read(auto slot) const {
        gathering.read(slot, 0, gathering.theirs);
        return MPI_SUCCESS;
    }
};

struct ExchangedBlocks {
    Blocks send, receive;
    int me, n;
    uint32_t block = static_cast<uint32_t>(receive.bytes(0));

    uint32_t bytes(int) const { return block; }
    uint64_t room_bytes() const { return static_cast<uint64_t>(n) * block; }
    void write(EngineSync& sync, std::byte* payload) const {
        for (int i = 0; i < n; ++i, payload += block) pack(sync, send.type(i), send.count(i), send.at(i), payload);
    }
    int read(auto slot) const {
        for (int i = 0; i < n; ++i)
            unpack(receive.type(i), receive.count(i), receive.at(i), slot(i) + static_cast<size_t>(me) * block);
        return MPI_SUCCESS;
    }
};

}  // namespace

Task barrier(const NodeDriver& on) { return on(protocol::Barrier{}); }

Task arrive(const NodeDriver& on) {
    return on(protocol::ToRoot<Nothing>{{}, kind_of(CollectiveKind::barrier), 0, 0, on.node().participants()});
}

Task release(const NodeDriver& on) {
    return on(protocol::FromRoot<Nothing>{{}, kind_of(CollectiveKind::barrier), 0, on.node().me() != 0});
}

Task abandon(const NodeDriver& on, int root, int error) {
    const bool is_revoked = error == MPIX_ERR_REVOKED || on.node().sync().is_revoked();
    const uint32_t kind = is_revoked ? EngineStage::kRevoked : EngineStage::kFailed;
    return on(protocol::FromRoot<Nothing>{{}, kind, root, false});
}

Task skip(const NodeDriver& on) { return on(protocol::Skip{}); }

bool fits_room(int participants, uint64_t bytes) { return bytes <= NodeLayout::wide_payload(participants); }

bool is_fragmented(const Datatype& type) { return type.size <= kMostElement; }

Task bcast(const NodeDriver& on, int root, bool reads, void* buffer, int64_t count, const Datatype& type, bool in_one) {
    const uint32_t kind = kind_of(CollectiveKind::bcast, root);
    if (datatype::packed_size(type, count) <= NodeLayout::kRingPayload)
        return on(protocol::FromRoot<Broadcast>{{buffer, count, type}, kind, root, reads});
    const bool large = in_one || !on.node().few();
    const uint64_t most =
        large ? NodeLayout::wide_payload(on.node().participants()) : most_per_piece(datatype::packed_size(type, count));
    return on(
        protocol::FromRoot<BroadcastPieces, true>{{buffer, count, type, most, large ? most : kBcastPiece}, kind, root, reads});
}

Task reduce(const NodeDriver& on, int root, ParticipantRange range, const void* input, void* receive, int64_t count,
            const Datatype& type, const Op& op) {
    const uint32_t kind = kind_of(CollectiveKind::reduce, root);
    if (!fits_slot(on.node(), datatype::packed_size(type, count)))
        return reduce_wide(on, kind, Operands(on.node().participants()), input,
                           ReductionShare{receive, 0, on.node().me() == root ? count : 0}, count, type, op);
    return on(protocol::ToRoot<SlotOperands>{{input, receive, count, type, op, range}, kind, root, range.first, range.last});
}

Task allreduce(const NodeDriver& on, const Exchange& exchange, const void* input, void* receive, int64_t count,
               const Datatype& type, const Op& op) {
    const uint32_t kind = kind_of(CollectiveKind::allreduce);
    const uint64_t total = datatype::packed_size(type, count);
    const bool few = on.node().few(), fits = fits_slot(on.node(), total);
    // Up to this total, it is faster if each participant does the whole reduction than if all enter a second meeting.
    const bool at_once = few && !exchange.inter() && total * static_cast<uint64_t>(exchange.size) <= kFoldedByAll;
    const Operands summands(exchange);
    if (!fits && (at_once || (exchange.size == 2 && !exchange.inter() && total <= kFoldedByTwo)))
        return fold_wide(on, kind, input, receive, count, type, op);
    if (!fits) return reduce_wide(on, kind, summands, input, ReductionShare{receive, 0, count}, count, type, op);
    if (!few) return on(protocol::CombineProtocol<Sums>{{input, receive, count, type, op, summands}, kind});
    return on(protocol::ToAll<SlotOperands>{{input, receive, count, type, op, summands.theirs()}, kind});
}

Task reduce_scatter(const NodeDriver& on, const Exchange& exchange, const void* input, void* receive, const Shares& shares,
                    const Datatype& type, const Op& op) {
    const int rank = exchange.rank - exchange.local_base;
    const int64_t first = shares.total(rank);
    return reduce_wide(on, kind_of(CollectiveKind::reduce_scatter), Operands(exchange), input,
                       ReductionShare{receive, first, first + shares[rank]}, shares.total(exchange.local_size), type, op);
}

Task allgather(const NodeDriver& on, const Exchange& exchange, const void* send, int64_t count, const Datatype& type,
               const Blocks& receive) {
    const PipelinedGather gathering(exchange, send, count, type, receive);
    if (!fits_slot(on.node(), gathering.longest())) return allgather_wide(on, gathering);
    return on(protocol::ToAll<Gathers>{{gathering}, kind_of(CollectiveKind::allgather)});
}

Task alltoall(const NodeDriver& on, const Blocks& send, const Blocks& receive) {
    const auto n = static_cast<uint64_t>(on.node().participants());
    if (!fits_slot(on.node(), receive.bytes(0) * n)) return alltoall_wide(on, send, receive);
    return on(protocol::ToAll<ExchangedBlocks>{{send, receive, on.node().me(), on.node().participants()},
                                               kind_of(CollectiveKind::alltoall)});
}

}  // namespace starling::collective::node
