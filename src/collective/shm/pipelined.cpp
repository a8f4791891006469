#include "collective/shm/pipelined.h"

#include <algorithm>
#include <numeric>

#include "collective/core/first_error.h"
#include "collective/shm/local_reduction.h"
#include "collective/shm/protocols.h"

namespace starling::collective::node {

Operands::Operands(const Exchange& exchange) : Operands(exchange.size) {
    if (!exchange.inter()) return;
    const bool low = exchange.local_base == 0;
    const int middle = low ? exchange.local_size : exchange.remote_size;
    group[0] = {0, middle};
    group[1] = {middle, exchange.size};
    groups = 2;
    wanted = low ? 1 : 0;
}

namespace {

/// A piece of a vector in elements, divided into shares of the participants. Shares begin on cache lines.
struct PartialSums {
    int64_t offset, count, each;
    PartialSums(int64_t from, int64_t elements, int n, uint64_t element_bytes) : offset(from), count(elements) {
        const auto line = static_cast<int64_t>(64 / std::gcd<uint64_t>(64, element_bytes));
        each = ((count + n - 1) / n + line - 1) / line * line;
    }
    int64_t begin(int i) const { return std::min(count, each * i); }
    int64_t size(int i) const { return begin(i + 1) - begin(i); }
};

/// A reduction through the pipeline buffers. Each piece takes two meetings: after the first every operand is written, after the second
/// every partial result.
struct Reduction {
    const Operands summands;
    const void* const input;
    const ReductionShare mine;
    const int64_t count;
    const Datatype& type;
    const Op& op;
    const int me, n;
    const uint64_t element_bytes = datatype::packed_size(type, 1);
    int64_t most = static_cast<int64_t>(NodeLayout::wide_payload(n) / element_bytes);  ///< elements per piece of the vector
    bool block = false;   ///< whether elements in memory have the packed layout
    bool direct = false;  ///< whether this process's results are written directly into its receive buffer
    Temporary sums{};     ///< results of this process, one share per group; unused with `direct`
    PartialSums piece{0, 0, n, element_bytes};
    bool has_operands = false;  ///< whether the piece's first meeting has ended
    FirstError first_error{};

    Reduction(const Operands& s, const void* in, const ReductionShare& share, int64_t elements, const Datatype& t, const Op& o,
              const EngineStage& node)
        : summands(s), input(in), mine(share), count(elements), type(t), op(o), me(node.me()), n(node.participants()) {
        // A buffer holds the operands of a piece, and later a share of each group's result. With two groups, shorter pieces may be needed
        // for that.
        if (summands.groups * PartialSums(0, most, n, element_bytes).each > most) most /= summands.groups;
        const PartialSums largest(0, std::min(count, most), n, element_bytes);
        block = datatype::is_block(type, largest.count);
        // Operands are read while results are written, so a result must not overwrite this process's input.
        direct = summands.groups == 1 && block && input != mine.buffer && mine.first == 0 && mine.last == count;
        if (!direct) sums = Temporary(type, summands.groups * largest.each);
        piece = largest;
    }

    uint32_t bytes(int) const { return static_cast<uint32_t>(bytes_of_elements(piece.count)); }
    uint32_t room_bytes() const {
        const int64_t elements = has_operands ? summands.groups * piece.size(me) : piece.count - (block ? piece.size(me) : 0);
        return static_cast<uint32_t>(bytes_of_elements(elements));
    }
    void write(EngineSync& sync, std::byte* room) {
        if (has_operands)
            write_sums(sync, room);
        else
            write_operands(sync, room);
    }
    int read(auto room) {
        if (!has_operands) return note(add_up(room));
        read_sums(room);
        return MPI_SUCCESS;
    }
    /// Returns whether a piece follows. Continues after an error, because other participants wait for this one.
    bool next(int& error) {
        note(error);
        has_operands = !has_operands && error == MPI_SUCCESS;
        if (has_operands) return true;
        const int64_t from = piece.offset + piece.count;
        if (from < count) piece = PartialSums(from, std::min(most, count - from), n, element_bytes);
        error = first_error;
        return from < count;
    }

  private:
    int note(int error) {
        first_error.note(error);
        return MPI_SUCCESS;
    }
    uint64_t bytes_of_elements(int64_t elements) const { return static_cast<uint64_t>(elements) * element_bytes; }

    /// Returns the place of a share's operands in the owner's buffer, in elements. The other participants' shares come first. The owner's
    /// own share follows, if the owner cannot read it from its input.
    int64_t place(int owner, int share) const {
        if (share == owner) return piece.count - piece.size(owner);
        return piece.begin(share) - (share > owner ? piece.size(owner) : 0);
    }
    void pack_range(EngineSync& sync, int first, int last, std::byte* room) const {
        const int64_t from = piece.begin(first), elements = piece.begin(last) - from;
        if (elements > 0)
            datatype::pack(sync.copies, type, elements, element(input, piece.offset + from, type), 0,
                           room + bytes_of_elements(place(me, first)), bytes_of_elements(elements), sync.into_room);
    }
    void write_operands(EngineSync& sync, std::byte* room) const {
        if (me > 0) pack_range(sync, 0, me, room);
        if (me + 1 < n) pack_range(sync, me + 1, n, room);
        if (!block) pack_range(sync, me, me + 1, room);
    }
    void* sum(int group) {
        if (direct) return element(mine.buffer, piece.offset + piece.begin(me), type);
        return element(sums.data(), group * piece.each, type);
    }
    int add_up(auto room) {
        const int64_t from = piece.begin(me), elements = piece.size(me);
        const auto operand = [&](int i) -> const std::byte* {
            return i == me && block
                       ? static_cast<const std::byte*>(datatype::block_address(type, element(input, piece.offset + from, type)))
                       : room(i) + bytes_of_elements(place(i, me));
        };
        int error = MPI_SUCCESS;
        for (int group = 0; group < summands.groups && error == MPI_SUCCESS && elements > 0; ++group)
            error = fold(operand, summands.group[group], sum(group), elements, type, op);
        return error;
    }
    void write_sums(EngineSync& sync, std::byte* room) {
        const int64_t elements = piece.size(me);
        for (int group = 0; group < summands.groups && elements > 0; ++group)
            datatype::pack(sync.copies, type, elements, sum(group), 0, room + bytes_of_elements(group * elements),
                           bytes_of_elements(elements), sync.into_room);
    }
    /// Copies from each participant's share of the result the part that belongs to `mine`.
    void read_sums(auto room) {
        for (int i = 0; i < n; ++i) {
            const int64_t begin = piece.offset + piece.begin(i);
            const int64_t from = std::max(begin, mine.first), to = std::min(begin + piece.size(i), mine.last);
            if (from >= to || (i == me && direct)) continue;
            unpack(type, to - from, element(mine.buffer, from - mine.first, type),
                   room(i) + bytes_of_elements(summands.wanted * piece.size(i) + from - begin));
        }
    }
};

/// The operands of a few participants, of which each reduces all.
struct FoldedPieces {
    const void* const input;
    void* const receive;
    const int64_t count;
    const Datatype& type;
    const Op& op;
    const int me, n;
    const uint64_t element_bytes = datatype::packed_size(type, 1);
    const int64_t most = static_cast<int64_t>(NodeLayout::wide_payload(n) / element_bytes);
    int64_t from = 0;
    FirstError first_error{};

    int64_t elements() const { return std::min(most, count - from); }
    uint32_t bytes(int) const { return static_cast<uint32_t>(static_cast<uint64_t>(elements()) * element_bytes); }
    uint32_t room_bytes() const { return bytes(me); }
    void write(EngineSync& sync, std::byte* room) const {
        datatype::pack(sync.copies, type, elements(), element(input, from, type), 0, room, room_bytes(), sync.into_room);
    }
    int read(auto room) {
        // The result may overwrite this process's operand, of which its buffer has a copy.
        const bool from_input = input != receive && datatype::is_block(type, elements());
        const auto operand = [&](int i) -> const std::byte* {
            if (i != me || !from_input) return room(i);
            return static_cast<const std::byte*>(datatype::block_address(type, element(input, from, type)));
        };
        first_error.note(fold(operand, ParticipantRange{0, n}, element(receive, from, type), elements(), type, op));
        return MPI_SUCCESS;
    }
    /// Continues after an error, because other participants wait for this one.
    bool next(int& error) {
        first_error.note(error);
        from += most;
        const bool more = error == MPI_SUCCESS && from < count;
        error = first_error;
        return more;
    }
};

/// Blocks longer than slots; each operation transfers one piece of every block.
struct GatherPieces {
    PipelinedGather gathering;
    uint64_t most, from = 0;
    bool has_own = false;

    uint64_t piece(uint64_t total) const { return from < total ? std::min(most, total - from) : 0; }
    uint32_t bytes(int participant) const { return static_cast<uint32_t>(piece(gathering.bytes(participant))); }
    uint32_t room_bytes() const { return static_cast<uint32_t>(piece(gathering.mine)); }
    void write(EngineSync& sync, std::byte* room) const { gathering.write(sync, from, piece(gathering.mine), room); }
    void copy_own() { has_own = gathering.copy_own(from, std::min(piece(gathering.mine), piece(gathering.theirs))); }
    int read(auto room) const {
        gathering.read(room, from, piece(gathering.theirs), has_own);
        return MPI_SUCCESS;
    }
    bool next(int error) {
        from += most;
        return error == MPI_SUCCESS && from < gathering.longest();
    }
};

struct ExchangedPieces {
    Blocks send, receive;
    int me, n;
    uint64_t total = receive.bytes(0), most = NodeLayout::wide_block(n), from = 0;
    bool moves = send.at(me) != receive.at(me);  ///< whether this process's block for itself must be copied
    /// Whether this process's block for itself can be copied piece by piece.
    bool in_pieces = datatype::is_block(send.type(me), send.count(me));

    uint64_t piece() const { return std::min(most, total - from); }
    /// Returns the offset of the block for `reader` in the owner's buffer, which holds blocks for all participants but its owner.
    uint64_t place(int owner, int reader) const { return static_cast<uint64_t>(reader < owner ? reader : reader - 1) * most; }
    uint32_t bytes(int) const { return static_cast<uint32_t>(piece()); }
    uint32_t room_bytes() const { return static_cast<uint32_t>(place(0, n - 1) + piece()); }
    void write(EngineSync& sync, std::byte* room) const {
        for (int i = 0; i < n; ++i)
            if (i != me)
                datatype::pack(sync.copies, send.type(i), send.count(i), send.at(i), from, room + place(me, i), piece(),
                               sync.into_room);
    }
    void copy_own() const {
        if (!moves || !in_pieces) return;
        const auto* block = static_cast<const std::byte*>(datatype::block_address(send.type(me), send.at(me)));
        datatype::unpack(receive.type(me), receive.count(me), receive.at(me), from, block + from, piece());
    }
    int read(auto room) const {
        for (int i = 0; i < n; ++i)
            if (i != me)
                datatype::unpack(receive.type(i), receive.count(i), receive.at(i), from, room(i) + place(i, me), piece());
        return MPI_SUCCESS;
    }
    bool next(int error) {
        from += most;
        return error == MPI_SUCCESS && from < total;
    }
};

}  // namespace

Task reduce_wide(const NodeDriver& on, uint32_t kind, const Operands& summands, const void* input, const ReductionShare& mine,
                 int64_t count, const Datatype& type, const Op& op) {
    if (count == 0 || type.size == 0) return Task::completed(MPI_SUCCESS);
    return on(protocol::ToAll<Reduction, true>{Reduction(summands, input, mine, count, type, op, on.node()), kind});
}

Task fold_wide(const NodeDriver& on, uint32_t kind, const void* input, void* receive, int64_t count, const Datatype& type,
               const Op& op) {
    if (count == 0 || type.size == 0) return Task::completed(MPI_SUCCESS);
    return on(
        protocol::ToAll<FoldedPieces, true>{{input, receive, count, type, op, on.node().me(), on.node().participants()}, kind});
}

PipelinedGather::PipelinedGather(const Exchange& its_exchange, const void* send, int64_t its_count, const Datatype& its_type,
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

Task allgather_wide(const NodeDriver& on, const PipelinedGather& gathering) {
    const GatherPieces pieces{gathering, NodeLayout::wide_payload(on.node().participants())};
    return on(protocol::ToAll<GatherPieces, true>{pieces, kind_of(CollectiveKind::allgather)});
}

Task alltoall_wide(const NodeDriver& on, const Blocks& send, const Blocks& receive) {
    const ExchangedPieces pieces{send, receive, on.node().me(), on.node().participants()};
    const int me = pieces.me;
    if (pieces.moves && !pieces.in_pieces)
        if (const int error =
                datatype::copy(send.type(me), send.count(me), send.at(me), receive.type(me), receive.count(me), receive.at(me)))
            return Task::completed(error);
    return on(protocol::ToAll<ExchangedPieces, true>{pieces, kind_of(CollectiveKind::alltoall)});
}

}  // namespace starling::collective::node
