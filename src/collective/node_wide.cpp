#include "collective/node_wide.h"

#include <algorithm>
#include <numeric>

#include "collective/node_fold.h"

namespace starling::collective::node {

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

/// One piece of a reduction. Bytes count from the beginning of the piece.
struct PieceOfReduction {
    Node& node;
    const Dealt dealt;
    const int me, n;
    const void* input;
    const Datatype& type;
    const uint64_t element_bytes;
    const bool block;  ///< elements lie in memory as they do in a packed piece

    uint64_t bytes(int64_t elements) const { return static_cast<uint64_t>(elements) * element_bytes; }
    const void* at(const void* buffer, int64_t index) const { return element(buffer, dealt.offset + index, type); }
    void* at(void* buffer, int64_t index) const { return element(buffer, dealt.offset + index, type); }

    void pack_range(int first, int last, std::byte* room) const {
        const int64_t from = dealt.begin(first), elements = dealt.begin(last) - from;
        if (elements > 0) datatype::pack(node.sync().copies, type, elements, at(input, from), 0, room + bytes(from), bytes(elements));
    }
    /// What the others reduce: and my own share where they can't be read from my buffer.
    void write_operands(std::byte* room) const {
        if (!block) return pack_range(0, n, room);
        pack_range(0, me, room);
        pack_range(me + 1, n, room);
    }
    /// My share of all operands, reduced into a buffer of the type.
    template <class Room>
    int reduce(Room room, void* result, const Op& op) const {
        const int64_t from = dealt.begin(me);
        const auto operand = [&](int i) {
            return i == me && block ? static_cast<std::byte*>(datatype::block_address(type, at(input, from)))
                                    : room(i) + bytes(from);
        };
        return fold(operand, Range{0, n}, result, dealt.size(me), type, op);
    }
    template <class Room>
    void read_results(Room room, void* receive, bool with_mine) const {
        for (int i = 0; i < n; ++i)
            if (dealt.size(i) > 0 && (i != me || with_mine))
                unpack(type, dealt.size(i), at(receive, dealt.begin(i)), room(i));
    }
};

/// Two meetings: after the first every operand is there, after the second every result.
int reduce_piece(uint32_t kind, const PieceOfReduction& piece, bool wants, void* receive, void* room_for_share,
                 const Op& op) {
    Node& node = piece.node;
    const auto bytes = static_cast<uint32_t>(piece.bytes(piece.dealt.count));
    const int64_t share = piece.dealt.size(piece.me);
    void* result = room_for_share ? room_for_share : piece.at(receive, piece.dealt.begin(piece.me));
    int error = MPI_SUCCESS;
    int stage_error = node.to_all_wide(
        kind, bytes, [&](std::byte* room) { piece.write_operands(room); },
        [&](auto room) {
            if (share > 0) error = piece.reduce(room, result, op);
        });
    if (stage_error == MPI_SUCCESS)
        stage_error = node.to_all_wide(
            kind, bytes,
            [&](std::byte* room) {
                if (share > 0) datatype::pack(node.sync().copies, piece.type, share, result, 0, room, piece.bytes(share));
            },
            [&](auto room) {
                if (wants) piece.read_results(room, receive, room_for_share != nullptr);
            });
    return stage_error ? stage_error : error;
}

}  // namespace

int reduce_wide(Node& node, Kind kind, int root, const void* input, void* receive, int64_t count, const Datatype& type,
                const Op& op) {
    const int me = node.me(), n = node.participants();
    const uint64_t element_bytes = datatype::packed_size(type, 1);
    const auto most = static_cast<int64_t>(NodeLayout::wide_payload(n) / element_bytes);
    const bool block = datatype::is_block(type, std::min(count, most)), wants = root < 0 || root == me;
    // Operands are read while results are written, so mine must not be overwritten.
    Temporary room;
    if (!wants || !block || input == receive)
        room = Temporary(type, Dealt(0, std::min(count, most), n, element_bytes).each);
    int error = MPI_SUCCESS;
    for (int64_t from = 0; from < count; from += most) {
        const PieceOfReduction piece{node, Dealt(from, std::min(most, count - from), n, element_bytes),
                                     me, n, input, type, element_bytes, block};
        const int piece_error =
            reduce_piece(kind_of(kind, std::max(root, 0)), piece, wants, receive, room.data(), op);
        if (error == MPI_SUCCESS) error = piece_error;
        if (node.broken()) break;
    }
    return error;
}

int allgather_wide(Node& node, const void* send, int64_t count, const Datatype& type, const Blocks& receive) {
    const int me = node.me(), n = node.participants();
    const bool in_place = send == MPI_IN_PLACE;
    const Datatype& out_type = in_place ? receive.type(me) : type;
    const int64_t out_count = in_place ? receive.count(me) : count;
    const void* out = in_place ? receive.at(me) : send;
    const uint64_t total = receive.bytes(0), most = NodeLayout::wide_payload(n);
    int error = MPI_SUCCESS;
    if (!in_place) error = datatype::copy(type, count, send, receive.type(me), receive.count(me), receive.at(me));
    for (uint64_t from = 0; from < total && error == MPI_SUCCESS; from += most) {
        const uint64_t bytes = std::min(most, total - from);
        error = node.to_all_wide(
            kind_of(Kind::allgather), static_cast<uint32_t>(bytes),
            [&](std::byte* room) { datatype::pack(node.sync().copies, out_type, out_count, out, from, room, bytes); },
            [&](auto room) {
                for (int i = 0; i < n; ++i)
                    if (i != me)
                        datatype::unpack(receive.type(i), receive.count(i), receive.at(i), from, room(i), bytes);
            });
    }
    return error;
}

int alltoall_wide(Node& node, const Blocks& send, const Blocks& receive) {
    const int me = node.me(), n = node.participants();
    const uint64_t total = receive.bytes(0), most = NodeLayout::wide_payload(n) / static_cast<uint32_t>(n - 1) / 64 * 64;
    // In each room, the blocks for all but its owner.
    const auto place = [most](int owner, int reader) {
        return static_cast<uint64_t>(reader < owner ? reader : reader - 1) * most;
    };
    int error = MPI_SUCCESS;
    if (send.at(me) != receive.at(me))
        error = datatype::copy(send.type(me), send.count(me), send.at(me), receive.type(me), receive.count(me),
                               receive.at(me));
    for (uint64_t from = 0; from < total && error == MPI_SUCCESS; from += most) {
        const uint64_t bytes = std::min(most, total - from);
        error = node.to_all_wide(
            kind_of(Kind::alltoall), static_cast<uint32_t>(bytes),
            [&](std::byte* room) {
                for (int i = 0; i < n; ++i)
                    if (i != me)
                        datatype::pack(node.sync().copies, send.type(i), send.count(i), send.at(i), from,
                                                        room + place(me, i), bytes);
            },
            [&](auto room) {
                for (int i = 0; i < n; ++i)
                    if (i != me)
                        datatype::unpack(receive.type(i), receive.count(i), receive.at(i), from,
                                         room(i) + place(i, me), bytes);
            });
    }
    return error;
}

}  // namespace starling::collective::node
