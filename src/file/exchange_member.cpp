// The part of a member in a collective transfer by two phases.
#include <algorithm>
#include <cstring>
#include <deque>

#include "collective/core/buffers.h"
#include "file/exchange_plan.h"
#include "file/message_window.h"
#include "file/piece_list.h"

namespace starling::file {

namespace {

using collective::byte_type;
using collective::RequestGroup;
using collective::Task;
using collective::View;

/// Walks the runs of a transfer block by block.
class BlockPieces {
  public:
    explicit BlockPieces(const ExchangePlan& plan)
        : start_(plan.transfer.position),
          cursor_(*plan.transfer.view, plan.transfer.position, static_cast<int64_t>(plan.transfer.bytes())) {}

    /// Calls `take(Extent of the file, position in the memory's stream)` for the runs in the block. Runs of earlier blocks that were not taken
    /// are skipped.
    template <class Take>
    void each(const Extent& block, Take take) {
        for (;;) {
            if (rest_.bytes == 0) {
                position_ = cursor_.position() - start_;
                rest_ = cursor_.next();
            }
            if (rest_.bytes == 0 || rest_.offset >= block.end()) return;
            if (rest_.offset < block.offset) {
                const int64_t before = std::min(rest_.bytes, block.offset - rest_.offset);
                rest_ = {rest_.offset + before, rest_.bytes - before};
                position_ += before;
                continue;
            }
            const Extent piece{rest_.offset, std::min(rest_.bytes, block.end() - rest_.offset)};
            take(piece, static_cast<uint64_t>(position_));
            rest_ = {piece.end(), rest_.bytes - piece.bytes};
            position_ += piece.bytes;
        }
    }

  private:
    int64_t start_;
    ExtentCursor cursor_;
    Extent rest_;
    int64_t position_ = 0;
};

/// Copies between the program's buffer, from a position of its stream on, and other memory.
class ProgramMemory {
  public:
    explicit ProgramMemory(const rma::LocalBuffer& memory)
        : memory_(memory),
          block_(datatype::is_block(*memory.type, memory.count)
                     ? static_cast<std::byte*>(datatype::block_address(*memory.type, memory.buffer))
                     : nullptr) {}
    void copy_to(std::byte* to, uint64_t position, int64_t bytes) const {
        if (block_)
            std::memcpy(to, block_ + position, static_cast<size_t>(bytes));
        else
            datatype::pack(*memory_.type, memory_.count, memory_.buffer, position, to, static_cast<uint64_t>(bytes));
    }
    void copy_from(const std::byte* from, uint64_t position, int64_t bytes) const {
        if (block_)
            std::memcpy(block_ + position, from, static_cast<size_t>(bytes));
        else
            datatype::unpack(*memory_.type, memory_.count, memory_.buffer, position, from, static_cast<uint64_t>(bytes));
    }

  private:
    const rma::LocalBuffer& memory_;
    std::byte* block_;
};

/// Copies this member's pieces of the block into the aggregator's buffer and marks them.
void deposit(BlockPieces& pieces, const ProgramMemory& memory, const Extent& block, const BlockBuffer& buffer,
             ExchangeResult& result) {
    DepositBits::Marker marker(buffer.bits);
    pieces.each(block, [&](const Extent& piece, uint64_t position) {
        const int64_t into = piece.offset - block.offset;
        memory.copy_to(buffer.data + into, position, piece.bytes);
        marker.mark(into, piece.bytes);
        result.moved += piece.bytes;
    });
}

/// Puts this member's pieces of the block into a message: the list, then the data.
void write_message(BlockPieces& pieces, const ProgramMemory& memory, const Extent& block, BlockHeader& header,
                   std::vector<std::byte>& message, ExchangeResult& result) {
    message.clear();
    PieceListWriter list(message);
    std::vector<std::pair<uint64_t, int64_t>> parts;
    pieces.each(block, [&](const Extent& piece, uint64_t position) {
        list.add({piece.offset - block.offset, piece.bytes});
        if (!parts.empty() && parts.back().first + static_cast<uint64_t>(parts.back().second) == position)
            parts.back().second += piece.bytes;
        else
            parts.emplace_back(position, piece.bytes);
        header.data_bytes += piece.bytes;
    });
    list.finish();
    header.list_bytes = static_cast<int64_t>(message.size());
    message.resize(message.size() + static_cast<size_t>(header.data_bytes));
    std::byte* to = message.data() + header.list_bytes;
    for (const auto& [position, bytes] : parts) {
        memory.copy_to(to, position, bytes);
        to += bytes;
    }
    result.moved += header.data_bytes;
}

/// One block of a read between the request and the arrival of its data. Its messages are awaited before it is used for another block.
struct WantedBlock {
    WantedBlock(View& up, View& down) : sends(up, 2, 0), receive(down, 0, 1) {}
    BlockMap::OwnedBlock block;
    BlockHeader header;
    std::vector<std::byte> list;
    std::vector<std::byte> answer;  ///< the aggregator's header, and the data if they travel by message
    RequestGroup sends, receive;
};

/// Returns whether this member may mark bytes of the block in the shared half: it has fetched the half's last block, so the aggregator has
/// cleared the marks of that one. Members' ranges have no gaps, so one that has no part in the last block does not know.
bool is_clean(const ExchangePlan& plan, const BlockMap::OwnedBlock& block) {
    const int64_t last = block.number - 2 * static_cast<int64_t>(plan.aggregators.size());
    return block.turn < 2 || plan.takes_part(plan.me(), {last, block.owner, block.turn - 2});
}

/// Requests this member's pieces of a block: marks them in the aggregator's buffer, or makes a list of them.
void want(BlockPieces& pieces, const ExchangePlan& plan, WantedBlock& wanted) {
    const Extent extent = plan.map.extent(wanted.block.number);
    const BlockBuffer buffer = plan.buffer(wanted.block);
    wanted.header = {.mark = BlockHeader::kMark};
    wanted.list.clear();
    if (buffer.data && plan.whole) return;
    if (buffer.data && is_clean(plan, wanted.block)) {
        DepositBits::Marker marker(buffer.bits);
        pieces.each(extent, [&](const Extent& piece, uint64_t) { marker.mark(piece.offset - extent.offset, piece.bytes); });
        return;
    }
    PieceListWriter list(wanted.list);
    pieces.each(extent, [&](const Extent& piece, uint64_t) {
        list.add({piece.offset - extent.offset, piece.bytes});
        if (!buffer.data) wanted.header.data_bytes += piece.bytes;
    });
    list.finish();
    wanted.header.list_bytes = static_cast<int64_t>(wanted.list.size());
}

/// Copies this member's pieces of a block to the program's buffer, up to the file's end. `data`: the block's buffer, or with `packed` the
/// pieces one after the other.
void fetch(BlockPieces& pieces, const ProgramMemory& memory, const Extent& block, const std::byte* data, bool packed,
           int64_t end, ExchangeResult& result) {
    pieces.each(block, [&](const Extent& piece, uint64_t position) {
        const int64_t bytes = std::clamp<int64_t>(end - piece.offset, 0, piece.bytes);
        const std::byte* const from = packed ? data : data + (piece.offset - block.offset);
        if (bytes > 0) memory.copy_from(from, position, bytes);
        if (packed) data += piece.bytes;
        result.moved += bytes;
    });
}

}  // namespace

Task deposit_all(const ExchangePlan& plan, ExchangeResult& result) {
    View up = plan.up, down = plan.down;
    BlockMap::Walk walk(plan.map);
    BlockPieces pieces(plan);
    const ProgramMemory memory(plan.transfer.memory);
    MessageWindow sent(up, 2 * plan.aggregators.size(), plan.most);  // each aggregator has two halves
    for (BlockMap::OwnedBlock block; walk.next(block);) {
        if (!plan.takes_part(plan.me(), block)) continue;
        const int to = plan.aggregator(block);
        BlockHeader half_is_free;
        // The half's last block must have been written.
        if (block.turn >= 2) co_await down.receive(&half_is_free, sizeof half_is_free, byte_type(), to);
        up.note(down.error);
        if (!sent.admits()) co_await make_room(sent);
        MessageWindow::BlockMessage& message = sent.add();
        message.header = {.mark = BlockHeader::kMark};
        message.bytes.clear();
        const BlockBuffer buffer = plan.buffer(block);
        const Extent extent = plan.map.extent(block.number);
        if (up.error == MPI_SUCCESS && buffer.data)
            deposit(pieces, memory, extent, buffer, result);
        else if (up.error == MPI_SUCCESS)
            write_message(pieces, memory, extent, message.header, message.bytes, result);
        sent.count();
        message.requests.send(&message.header, sizeof message.header, byte_type(), to);
        const auto bytes = static_cast<int64_t>(message.bytes.size());
        if (bytes > 0) message.requests.send(message.bytes.data(), bytes, byte_type(), to);
    }
    co_await finish_all(sent);
    co_return up.error;
}

namespace {

/// The blocks that a member has requested and not fetched yet, oldest first.
class RequestedBlocks {
  public:
    RequestedBlocks(View& up, View& down, size_t aggregators) {
        for (size_t i = 0; i < 2 * aggregators; ++i) window_.emplace_back(up, down);  // each aggregator has two halves
    }
    bool empty() const { return fetched_ == requested_; }
    /// Returns whether a block may be requested: only if the last block in its half has been fetched. Its aggregator receives the messages of
    /// this member in that order, even if the member has no part in the blocks between.
    bool admits(const BlockMap::OwnedBlock& block) const {
        if (requested_ - fetched_ == window_.size()) return false;
        for (size_t i = fetched_; i != requested_; ++i) {
            const BlockMap::OwnedBlock& earlier = window_[i % window_.size()].block;
            if (earlier.owner == block.owner && earlier.turn + 2 <= block.turn) return false;
        }
        return true;
    }
    WantedBlock& add() { return window_[requested_++ % window_.size()]; }
    WantedBlock& take() { return window_[fetched_++ % window_.size()]; }

  private:
    std::deque<WantedBlock> window_;
    size_t requested_ = 0, fetched_ = 0;
};

/// Starts the messages that request a block. The receive of the answer is started first and no send is awaited, so an aggregator that sends
/// an answer never waits for a member that sends a request.
void request(const ExchangePlan& plan, WantedBlock& wanted, bool failed) {
    const int aggregator = plan.aggregator(wanted.block);
    const bool mapped = plan.buffer(wanted.block).data != nullptr;
    wanted.answer.resize(sizeof(BlockHeader) + (failed || mapped ? 0 : static_cast<size_t>(wanted.header.data_bytes)));
    wanted.receive.receive(wanted.answer.data(), static_cast<int64_t>(wanted.answer.size()), byte_type(), aggregator);
    wanted.sends.send(&wanted.header, sizeof wanted.header, byte_type(), aggregator);
    if (failed || wanted.header.list_bytes == 0) return;
    wanted.sends.send(wanted.list.data(), wanted.header.list_bytes, byte_type(), aggregator);
}

/// Copies the data of the oldest requested block to the program's buffer when its answer has arrived.
void take_answer(const ExchangePlan& plan, const WantedBlock& next, BlockPieces& pieces, ExchangeResult& result) {
    const BlockBuffer buffer = plan.buffer(next.block);
    BlockHeader header;
    std::memcpy(&header, next.answer.data(), sizeof header);
    fetch(pieces, ProgramMemory(plan.transfer.memory), plan.map.extent(next.block.number),
          buffer.data ? buffer.data : next.answer.data() + sizeof header, !buffer.data, header.end, result);
}

}  // namespace

Task fetch_all(const ExchangePlan& plan, ExchangeResult& result) {
    View up = plan.up, down = plan.down;
    BlockMap::Walk walk(plan.map);
    BlockPieces wanted_pieces(plan), pieces(plan);
    RequestedBlocks requested(up, down, plan.aggregators.size());
    BlockHeader half_is_read;
    half_is_read.mark = BlockHeader::kMark;
    BlockMap::OwnedBlock block;
    for (bool more = walk.next(block); more || !requested.empty();) {
        if (more && !plan.takes_part(plan.me(), block)) {
            more = walk.next(block);
            continue;
        }
        if (more && requested.admits(block)) {
            WantedBlock& next = requested.add();
            next.block = block;
            const bool failed = !(up.error == MPI_SUCCESS);
            if (!failed) want(wanted_pieces, plan, next);
            request(plan, next, failed);
            more = walk.next(block);
            continue;
        }
        WantedBlock& next = requested.take();
        RequestGroup &receive = next.receive, &sends = next.sends;
        co_await receive;
        co_await sends;
        up.note(down.error);
        if (up.error == MPI_SUCCESS) take_answer(plan, next, pieces, result);
        co_await up.send(&half_is_read, sizeof half_is_read, byte_type(), plan.aggregator(next.block));
    }
    co_return up.error;
}

}  // namespace starling::file
