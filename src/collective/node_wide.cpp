#include "collective/node_wide.h"

#include <algorithm>
#include <numeric>

#include "collective/node_fold.h"

namespace starling::collective::node {

Summands::Summands(const Exchange& exchange) : Summands(exchange.size) {
    if (!exchange.inter()) return;
    const bool low = exchange.local_base == 0;
    const int middle = low ? exchange.local_size : exchange.remote_size;
    group[0] = {0, middle};
    group[1] = {middle, exchange.size};
    groups = 2;
    wanted = low ? 1 : 0;
}

namespace {

/// A piece of a vector dealt out to participants, in elements. Shares begin on cache lines.
struct Dealt {
    int64_t offset, count, each;
    Dealt(int64_t from, int64_t elements, int n, uint64_t element_bytes) : offset(from), count(elements) {
        const auto line = static_cast<int64_t>(64 / std::gcd<uint64_t>(64, element_bytes));
        each = ((count + n - 1) / n + line - 1) / line * line;
    }
    int64_t begin(int i) const { return std::min(count, each * i); }
    int64_t size(int i) const { return begin(i + 1) - begin(i); }
};

/// A reduction on its way through the rooms.
struct Reduction {
    Node& node;
    const uint32_t kind;
    const Summands& summands;
    const void* input;
    const Share mine;
    const Datatype& type;
    const Op& op;
    const int me = node.me(), n = node.participants();
    const uint64_t element_bytes = datatype::packed_size(type, 1);
    int64_t most = static_cast<int64_t>(NodeLayout::wide_payload(n) / element_bytes);  ///< elements of a piece
    bool block = false;   ///< elements lie in memory as they do in a packed piece
    bool direct = false;  ///< what I reduce goes where it belongs at once
    Temporary sums{};     ///< else: my shares, one for each group of summands

    uint64_t bytes(int64_t elements) const { return static_cast<uint64_t>(elements) * element_bytes; }

    /// Where the operands of a participant's share lie in somebody's room, in elements: first those of the others, then
    /// the owner's own, if that can't read them from its buffer.
    static int64_t place(const Dealt& piece, int owner, int share) {
        if (share == owner) return piece.count - piece.size(owner);
        return piece.begin(share) - (share > owner ? piece.size(owner) : 0);
    }
    void pack_range(const Dealt& piece, int first, int last, std::byte* room) const {
        const int64_t from = piece.begin(first), elements = piece.begin(last) - from;
        if (elements > 0)
            datatype::pack(node.sync().copies, type, elements, element(input, piece.offset + from, type), 0,
                           room + bytes(place(piece, me, first)), bytes(elements), node.sync().into_room);
    }
    void write_operands(const Dealt& piece, std::byte* room) const {
        if (me > 0) pack_range(piece, 0, me, room);
        if (me + 1 < n) pack_range(piece, me + 1, n, room);
        if (!block) pack_range(piece, me, me + 1, room);
    }
    uint32_t room_for_operands(const Dealt& piece) const {
        return static_cast<uint32_t>(bytes(piece.count - (block ? piece.size(me) : 0)));
    }
    uint32_t room_for_sums(const Dealt& piece) const { return static_cast<uint32_t>(bytes(summands.groups * piece.size(me))); }
    void* sum(const Dealt& piece, int group) {
        if (direct) return element(mine.buffer, piece.offset + piece.begin(me), type);
        return element(sums.data(), group * piece.each, type);
    }
    template <class Room>
    int add_up(const Dealt& piece, Room room) {
        const int64_t from = piece.begin(me), elements = piece.size(me);
        const auto operand = [&](int i) {
            return i == me && block
                       ? static_cast<std::byte*>(datatype::block_address(type, element(input, piece.offset + from, type)))
                       : room(i) + bytes(place(piece, i, me));
        };
        int error = MPI_SUCCESS;
        for (int group = 0; group < summands.groups && error == MPI_SUCCESS && elements > 0; ++group)
            error = fold(operand, summands.group[group], sum(piece, group), elements, type, op);
        return error;
    }
    void write_sums(const Dealt& piece, std::byte* room) {
        const int64_t elements = piece.size(me);
        for (int group = 0; group < summands.groups && elements > 0; ++group)
            datatype::pack(node.sync().copies, type, elements, sum(piece, group), 0, room + bytes(group * elements),
                           bytes(elements), node.sync().into_room);
    }
    /// Of each participant's share of the sums, what belongs to mine.
    template <class Room>
    void read_sums(const Dealt& piece, Room room) {
        for (int i = 0; i < n; ++i) {
            const int64_t begin = piece.offset + piece.begin(i);
            const int64_t from = std::max(begin, mine.first), to = std::min(begin + piece.size(i), mine.last);
            if (from >= to || (i == me && direct)) continue;
            unpack(type, to - from, element(mine.buffer, from - mine.first, type),
                   room(i) + bytes(summands.wanted * piece.size(i) + from - begin));
        }
    }
    /// Two meetings: after the first every operand is there, after the second every sum.
    int pass(const Dealt& piece) {
        const auto total = static_cast<uint32_t>(bytes(piece.count));
        int error = MPI_SUCCESS;
        int stage_error = node.to_all_wide(
            kind, total, room_for_operands(piece), [&](std::byte* room) { write_operands(piece, room); },
            [&](auto room) { error = add_up(piece, room); });
        if (stage_error == MPI_SUCCESS)
            stage_error = node.to_all_wide(
                kind, total, room_for_sums(piece), [&](std::byte* room) { write_sums(piece, room); },
                [&](auto room) { read_sums(piece, room); });
        return stage_error ? stage_error : error;
    }
};

}  // namespace

int reduce_wide(Node& node, uint32_t kind, const Summands& summands, const void* input, const Share& mine, int64_t count,
                const Datatype& type, const Op& op) {
    Reduction reduction{node, kind, summands, input, mine, type, op};
    // A room holds the operands of a piece, and then a share of each sum.
    if (summands.groups * Dealt(0, reduction.most, reduction.n, reduction.element_bytes).each > reduction.most)
        reduction.most /= summands.groups;
    const Dealt largest(0, std::min(count, reduction.most), reduction.n, reduction.element_bytes);
    reduction.block = datatype::is_block(type, largest.count);
    // Operands are read while sums are written, so mine must not be overwritten.
    reduction.direct = summands.groups == 1 && reduction.block && input != mine.buffer && mine.first == 0 && mine.last == count;
    if (!reduction.direct) reduction.sums = Temporary(type, summands.groups * largest.each);
    int error = MPI_SUCCESS;
    for (int64_t from = 0; from < count; from += reduction.most) {
        const Dealt piece(from, std::min(reduction.most, count - from), reduction.n, reduction.element_bytes);
        const int piece_error = reduction.pass(piece);
        if (error == MPI_SUCCESS) error = piece_error;
        if (node.broken()) break;
    }
    return error;
}

Gathering::Gathering(const Exchange& its_exchange, const void* send, int64_t its_count, const Datatype& its_type,
                     const Blocks& blocks)
    : exchange(its_exchange),
      receive(blocks),
      in_place(send == MPI_IN_PLACE),
      type(in_place ? blocks.type(exchange.rank) : its_type),
      count(in_place ? blocks.count(exchange.rank) : its_count),
      buffer(in_place ? blocks.at(exchange.rank) : send),
      mine(datatype::packed_size(type, count)),
      theirs(blocks.bytes(0)),
      own_block(datatype::is_block(type, count) ? static_cast<const std::byte*>(datatype::block_address(type, buffer))
                                                : nullptr) {}

int allgather_wide(Node& node, const Gathering& gathering) {
    const uint64_t most = NodeLayout::wide_payload(node.participants());
    const auto piece = [most](uint64_t total, uint64_t from) { return from < total ? std::min(most, total - from) : 0; };
    int error = MPI_SUCCESS;
    for (uint64_t from = 0; from < gathering.longest() && error == MPI_SUCCESS; from += most)
        error = node.to_all_wide(
            kind_of(Kind::allgather), [&](int i) { return static_cast<uint32_t>(piece(gathering.bytes(i), from)); },
            static_cast<uint32_t>(piece(gathering.mine, from)),
            [&](std::byte* room) { gathering.write(node, from, piece(gathering.mine, from), room); },
            [&](auto room) { gathering.read(room, from, piece(gathering.theirs, from)); });
    return error;
}

int alltoall_wide(Node& node, const Blocks& send, const Blocks& receive) {
    const int me = node.me(), n = node.participants();
    const uint64_t total = receive.bytes(0), most = NodeLayout::wide_block(n);
    // In each room, the blocks for all but its owner.
    const auto place = [most](int owner, int reader) {
        return static_cast<uint64_t>(reader < owner ? reader : reader - 1) * most;
    };
    const bool moves = send.at(me) != receive.at(me);
    const bool in_pieces = datatype::is_block(send.type(me), send.count(me));
    int error = MPI_SUCCESS;
    if (moves && !in_pieces)
        error = datatype::copy(send.type(me), send.count(me), send.at(me), receive.type(me), receive.count(me), receive.at(me));
    for (uint64_t from = 0; from < total && error == MPI_SUCCESS; from += most) {
        const uint64_t bytes = std::min(most, total - from);
        const auto wide_bytes = static_cast<uint32_t>(place(0, n - 1) + bytes);
        error = node.to_all_wide(
            kind_of(Kind::alltoall), static_cast<uint32_t>(bytes), wide_bytes,
            [&](std::byte* room) {
                for (int i = 0; i < n; ++i)
                    if (i != me)
                        datatype::pack(node.sync().copies, send.type(i), send.count(i), send.at(i), from, room + place(me, i),
                                       bytes, node.sync().into_room);
            },
            [&](auto room) {
                if (moves && in_pieces) {
                    const auto* block = static_cast<const std::byte*>(datatype::block_address(send.type(me), send.at(me)));
                    datatype::unpack(receive.type(me), receive.count(me), receive.at(me), from, block + from, bytes);
                }
                for (int i = 0; i < n; ++i)
                    if (i != me)
                        datatype::unpack(receive.type(i), receive.count(i), receive.at(i), from, room(i) + place(i, me), bytes);
            });
    }
    return error;
}

}  // namespace starling::collective::node
