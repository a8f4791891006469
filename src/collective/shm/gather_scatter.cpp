// Gather and scatter on the shared-memory stage: of blocks that fit into a slot or a ring buffer, and of longer ones. The participants that
// write longer blocks do not wait for their readers, and may be several operations ahead of them.
#include <algorithm>

#include "collective/core/first_error.h"
#include "collective/shm/local_reduction.h"
#include "collective/shm/operations.h"
#include "collective/shm/protocols.h"

namespace starling::collective::node {

namespace {

struct GatheredBlocks {
    const void* send;
    int64_t count;
    const Datatype& type;
    Blocks receive;
    ParticipantRange range;
    int me;
    uint32_t block;

    uint32_t bytes() const { return block; }
    uint32_t room_bytes() const { return block; }
    void write(EngineSync& sync, std::byte* payload) const {
        if (send != MPI_IN_PLACE) pack(sync, type, count, send, payload);
    }
    int read(auto slot) const {
        for (int i = range.first; i < range.last; ++i) {
            const int rank = i - range.first;
            if (send != MPI_IN_PLACE || i != me) unpack(receive.type(rank), receive.count(rank), receive.at(rank), slot(i));
        }
        return MPI_SUCCESS;
    }
};

/// Blocks that are longer than slots.
struct LongGatheredBlocks : GatheredBlocks {
    int own_error = MPI_SUCCESS;

    void write(EngineSync& sync, std::byte* room) const {
        datatype::pack(sync.copies, type, count, send, 0, room, block, sync.into_room);
    }
    void copy_own() {
        const int rank = me - range.first;
        if (range.has(me) && send != MPI_IN_PLACE)
            own_error = datatype::copy(type, count, send, receive.type(rank), receive.count(rank), receive.at(rank));
    }
    int read(auto room) const {
        for (int i = range.first; i < range.last; ++i)
            if (const int rank = i - range.first; i != me)
                datatype::unpack(receive.type(rank), receive.count(rank), receive.at(rank), 0, room(i), block);
        return own_error;
    }
};

struct ScatteredBlocks {
    Blocks send;
    void* receive;
    int64_t count;
    const Datatype& type;
    ParticipantRange range;
    int me, root;
    uint32_t block;

    /// Copies the root's own block, which does not use the stage.
    int copy_own() const {
        const int mine = me - range.first;
        if (me != root || !range.has(me) || receive == MPI_IN_PLACE) return MPI_SUCCESS;
        return datatype::copy(send.type(mine), send.count(mine), send.at(mine), type, count, receive);
    }
};

struct Scattered : ScatteredBlocks {
    uint32_t bytes() const { return block; }
    uint64_t room_bytes() const { return static_cast<uint64_t>(range.last - range.first) * block; }
    void write(EngineSync& sync, std::byte* payload) const {
        for (int i = 0; i < range.last - range.first; ++i, payload += block)
            pack(sync, send.type(i), send.count(i), send.at(i), payload);
    }
    int read(const std::byte* payload) const {
        unpack(type, count, receive, payload + static_cast<size_t>(me - range.first) * block);
        return MPI_SUCCESS;
    }
    /// Returns false: no piece follows.
    bool next(int& error) const {
        if (error == MPI_SUCCESS) error = copy_own();
        return false;
    }
};

/// Blocks that do not fit into a ring buffer together. Each piece has whole blocks, for consecutive readers. The first ones follow the
/// root, and can go on while the root writes the others' blocks.
struct LongScattered : ScatteredBlocks {
    uint64_t room;
    int size = range.last - range.first;
    int readers = size - range.has(root);
    int per_piece = std::max(1, static_cast<int>(room / block));
    int from = 0;  ///< number of readers of the pieces before this one
    FirstError first_error{};

    int in_piece() const { return std::min(per_piece, readers - from); }
    /// Returns the participant that is the reader number `index`, and the inverse.
    int reader(int index) const {
        return range.has(root) ? range.first + (root - range.first + 1 + index) % size : range.first + index;
    }
    int index(int participant) const {
        return range.has(root) ? (participant - root - 1 + size) % size : participant - range.first;
    }
    bool is_for_me() const { return from <= index(me) && index(me) < from + in_piece(); }
    uint32_t bytes() const { return static_cast<uint32_t>(in_piece()) * block; }
    void write(EngineSync& sync, std::byte* to) const {
        for (int i = from; i < from + in_piece(); ++i, to += block) {
            const int rank = reader(i) - range.first;
            datatype::pack(sync.copies, send.type(rank), send.count(rank), send.at(rank), 0, to, block, sync.into_room);
        }
    }
    int read(const std::byte* payload) const {
        datatype::unpack(type, count, receive, 0, payload + static_cast<size_t>(index(me) - from) * block, block);
        return MPI_SUCCESS;
    }
    /// Continues after an error, because all participants count all pieces.
    bool next(int& error) {
        first_error.note(error);
        from += per_piece;
        if (from < readers) return true;
        first_error.note(copy_own());
        error = first_error;
        return false;
    }
};

}  // namespace

Task gather(const NodeDriver& on, int root, ParticipantRange range, const void* send, int64_t count, const Datatype& type,
            const Blocks& receive) {
    const int me = on.node().me();
    const auto block = static_cast<uint32_t>(me == root ? receive.bytes(0) : datatype::packed_size(type, count));
    const uint32_t kind = kind_of(CollectiveKind::gather, root);
    const GatheredBlocks blocks{send, count, type, receive, range, me, block};
    if (block > NodeLayout::slot_payload(on.node().participants()))
        return on(protocol::ToRoot<LongGatheredBlocks, true>{{blocks}, kind, root, range.first, range.last});
    return on(protocol::ToRoot<GatheredBlocks>{blocks, kind, root, range.first, range.last});
}

Task scatter(const NodeDriver& on, int root, ParticipantRange range, const Blocks& send, void* receive, int64_t count,
             const Datatype& type) {
    const int me = on.node().me();
    const auto block = static_cast<uint32_t>(me == root ? send.bytes(0) : datatype::packed_size(type, count));
    const uint32_t kind = kind_of(CollectiveKind::scatter, root);
    const ScatteredBlocks blocks{send, receive, count, type, range, me, root, block};
    if (static_cast<uint64_t>(range.last - range.first) * block > NodeLayout::kRingPayload) {
        const uint64_t room = NodeLayout::wide_payload(on.node().participants());
        return on(protocol::FromRoot<LongScattered, true>{{blocks, room}, kind, root, range.has(me)});
    }
    return on(protocol::FromRoot<Scattered>{{blocks}, kind, root, range.has(me)});
}

}  // namespace starling::collective::node
