#include "collective/shm/neighborhood.h"

#include "collective/shm/local_reduction.h"
#include "collective/shm/protocols.h"

namespace starling::collective::node {

namespace {

using comm::NeighborEdge;

/// The arrangement of a process's blocks in the buffer that its neighbors read.
enum class BlockArrangement : uint32_t {
    one,    ///< one block, for all neighbors
    alike,  ///< consecutive blocks of one size
    table   ///< consecutive blocks of any sizes, after a table of their ends
};
/// Location of the buffer that holds a process's blocks; stored in the header's `place`.
enum class BlockLocation : uint32_t { in_line, slot, wide, nowhere };

struct Neighbors {
    NeighborTraffic call;
    const std::vector<int>& places;
    ByMessages& rest;
    BlockArrangement form = call.same_for_all     ? BlockArrangement::one
                            : call.send.uniform() ? BlockArrangement::alike
                                                  : BlockArrangement::table;
    uint64_t total = length();

    int out() const { return static_cast<int>(call.neighborhood.sends.size()); }
    int block_to(int edge) const { return call.block_to(call.neighborhood.sends[static_cast<size_t>(edge)]); }
    uint32_t table_bytes() const {
        return form == BlockArrangement::table ? static_cast<uint32_t>(sizeof(uint32_t)) * static_cast<uint32_t>(out()) : 0;
    }
    uint64_t length() const {
        if (out() == 0) return 0;
        if (form == BlockArrangement::one) return call.send.bytes(0);
        if (form == BlockArrangement::alike) return static_cast<uint64_t>(out()) * call.send.bytes(block_to(0));
        uint64_t sum = table_bytes();
        for (int i = 0; i < out(); ++i) sum += call.send.bytes(block_to(i));
        return sum;
    }

    bool mutual() const { return call.neighborhood.mutual; }
    const std::vector<NeighborEdge>& writes_for() const { return call.neighborhood.sends; }
    const std::vector<NeighborEdge>& reads_from() const { return call.neighborhood.receives; }
    uint32_t kind() const { return static_cast<uint32_t>(kKinds + 1) << 16 | static_cast<uint32_t>(form); }
    /// Returns the size of one block in bytes if all blocks have the same size, otherwise the size of the table of the blocks' ends. 0
    /// without neighbors to send to.
    uint32_t bytes() const {
        if (form == BlockArrangement::table || out() == 0) return table_bytes();
        return bytes_of(call.send.type(0), call.send.count(block_to(0)));
    }

    /// Returns the largest number of bytes that a buffer takes. With few participants, longer data is faster by messages, which the kernel
    /// copies once, than by two copies through shared memory.
    static uint64_t most(auto& stage) {
        const int n = stage.participants();
        return stage.few() ? NodeLayout::slot_payload(n) : NodeLayout::wide_payload(n);
    }
    /// Returns whether to poll the source's slot. A block over the limit always comes by a message, even if the sender's other blocks are
    /// in the buffer.
    bool looks_for(auto& stage, const NeighborEdge& from) const { return call.receive.bytes(from.block) <= most(stage); }

    std::byte* find_room(auto& stage) const {
        NodeLayout::StageHeader& header = stage.own_slot();
        constexpr uint64_t kInLine = sizeof(NodeLayout::StageLine) - sizeof(NodeLayout::StageHeader);
        const BlockLocation where = total > most(stage)                                       ? BlockLocation::nowhere
                                    : total <= kInLine                                        ? BlockLocation::in_line
                                    : total <= NodeLayout::slot_payload(stage.participants()) ? BlockLocation::slot
                                                                                              : BlockLocation::wide;
        header.place = static_cast<uint32_t>(where);
        rest.mine = where == BlockLocation::nowhere;
        return room(stage, stage.me(), where);
    }
    static std::byte* room(auto& stage, int participant, BlockLocation where) {
        if (where == BlockLocation::nowhere) return nullptr;
        if (where == BlockLocation::wide) return stage.layout().wide(participant, stage.sequence());
        return NodeLayout::payload(stage.slot(participant),
                                   where == BlockLocation::in_line ? 0 : NodeLayout::slot_payload(stage.participants()));
    }
    void write(EngineSync& sync, std::byte* room) const {
        if (!room || out() == 0) return;
        if (form == BlockArrangement::one) return pack(sync, call.send.type(0), call.send.count(0), call.send.at(0), room);
        auto* ends = reinterpret_cast<uint32_t*>(room);
        uint32_t at = table_bytes();
        for (int i = 0; i < out(); ++i) {
            const int block = block_to(i);
            pack(sync, call.send.type(block), call.send.count(block), call.send.at(block), room + at);
            at += bytes_of(call.send.type(block), call.send.count(block));
            if (form == BlockArrangement::table) ends[i] = at;
        }
    }

    int read(auto& stage) const {
        int error = MPI_SUCCESS;
        for (size_t i = 0; i < reads_from().size(); ++i) {
            const int one = read_from(stage, i);
            if (error == MPI_SUCCESS) error = one;
        }
        return error;
    }
    int read_from(auto& stage, size_t i) const {
        const NeighborEdge& from = reads_from()[i];
        if (!looks_for(stage, from)) {
            leave_to_messages(i);
            return MPI_SUCCESS;
        }
        const NodeLayout::StageHeader& header = stage.slot(from.rank);
        const auto where = static_cast<BlockLocation>(header.place);
        const auto expected = call.receive.bytes(from.block);
        // With a table, header.bytes is the table's size and needs no check; the block's length is checked below, against the table.
        const uint32_t in_header = form == BlockArrangement::table ? header.bytes : static_cast<uint32_t>(expected);
        if (const int error = stage.check(header, kind(), in_header)) return error;
        if (where == BlockLocation::nowhere) {
            leave_to_messages(i);
            return MPI_SUCCESS;
        }
        const std::byte* data = room(stage, from.rank, where);
        const auto place = static_cast<uint32_t>(places[i]);
        if (form == BlockArrangement::alike) data += place * expected;
        if (form == BlockArrangement::table) {
            const auto* ends = reinterpret_cast<const uint32_t*>(data);
            const uint32_t begin = place == 0 ? header.bytes : ends[place - 1], bytes = ends[place] - begin;
            if (bytes != expected) [[unlikely]]
                return wrong_length(bytes, expected);
            data += begin;
        }
        unpack(call.receive.type(from.block), call.receive.count(from.block), call.receive.at(from.block), data);
        return MPI_SUCCESS;
    }
    void leave_to_messages(size_t i) const {
        rest.from.resize(reads_from().size());
        rest.from[i] = true;
    }
    [[gnu::cold, gnu::noinline]] static int wrong_length(uint32_t bytes, uint64_t expected) {
        return fail(MPI_ERR_TRUNCATE, "a neighbor passed %u bytes to a collective operation where %llu were expected", bytes,
                    static_cast<unsigned long long>(expected));
    }
};

}  // namespace

Task neighbors(const NodeDriver& on, const NeighborTraffic& traffic, const std::vector<int>& places, ByMessages& rest) {
    return on(protocol::ToSome<Neighbors>{{traffic, places, rest}});
}

}  // namespace starling::collective::node
