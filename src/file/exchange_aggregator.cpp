// The part of an aggregator in a collective transfer by two phases: its halves are filled and emptied in turn, and the helper thread reads
// or writes one of them while the members copy to or from the other.
#include <cstring>

#include "collective/core/buffers.h"
#include "file/exchange_plan.h"
#include "file/helper.h"
#include "file/message_window.h"
#include "file/piece_list.h"

namespace starling::file {

namespace {

using collective::byte_type;
using collective::RequestGroup;
using collective::Task;
using collective::View;

/// A block of which the helper thread writes the marked bytes, or reads them. It clears the marks.
struct BlockJob : HelperJob {
    OpenFile* system = nullptr;
    BlockBuffer buffer;
    Extent block;        ///< offsets and bytes for which the half has memory
    Extent used;         ///< part of the block that has data
    int64_t gap = 0;     ///< reads: length of gaps that are read, too
    bool whole = false;  ///< reads: whether all of `used` is read
    bool skip = false;   ///< whether only the marks are cleared, after an error
    int64_t end = 0;     ///< reads: offset up to which data were read
};

Moved write_marked(HelperJob& job) {
    auto& mine = static_cast<BlockJob&>(job);
    Moved all;
    const int64_t last = mine.used.end() - mine.block.offset;
    for (Extent run{mine.used.offset - mine.block.offset, 0}; !mine.skip && all.system_error == 0;) {
        run = mine.buffer.bits.next_run(run.end(), last);
        if (run.bytes == 0) break;
        const iovec piece{mine.buffer.data + run.offset, static_cast<size_t>(run.bytes)};
        const Moved part = mine.system->write(mine.block.offset + run.offset, &piece, 1);
        all.bytes += part.bytes;
        all.system_error = part.system_error;
    }
    mine.buffer.bits.clear(mine.block.bytes);
    return all;
}

Moved read_marked(HelperJob& job) {
    auto& mine = static_cast<BlockJob&>(job);
    Moved all;
    const int64_t last = mine.used.end() - mine.block.offset;
    mine.end = mine.skip ? mine.block.offset : mine.used.end();
    for (Extent run{mine.used.offset - mine.block.offset, 0}; !mine.skip;) {
        run = mine.whole ? Extent{run.end(), last - run.end()} : mine.buffer.bits.next_run(run.end(), last, mine.gap);
        if (run.bytes == 0) break;
        const iovec piece{mine.buffer.data + run.offset, static_cast<size_t>(run.bytes)};
        const Moved part = mine.system->read(mine.block.offset + run.offset, &piece, 1);
        all.bytes += part.bytes;
        if (part.system_error == 0 && part.bytes == run.bytes) continue;
        all.system_error = part.system_error;
        mine.end = mine.block.offset + run.offset + part.bytes;
        break;
    }
    if (!mine.whole) mine.buffer.bits.clear(mine.block.bytes);
    return all;
}

/// A job that renews the cache of a file.
struct RenewalJob : HelperJob {
    OpenFile* system = nullptr;
};

Moved renew(HelperJob& job) { return {0, static_cast<RenewalJob&>(job).system->sync()}; }

/// The state of an aggregator's tasks.
class Aggregator {
  public:
    Aggregator(const ExchangePlan& plan, ExchangeResult& result)
        : plan(plan), result(result), up(plan.up), down(plan.down), walk_(plan.map), headers_(size()) {}

    /// Finds the next block of this aggregator; returns false if there is none.
    bool next(BlockMap::OwnedBlock& block) {
        while (walk_.next(block))
            if (plan.aggregator(block) == plan.me()) return true;
        return false;
    }
    bool failed() const { return result.system_error != 0 || !(up.error == MPI_SUCCESS) || !(down.error == MPI_SUCCESS); }

    /// Receives a header from each member that has a part in the block.
    Task receive_headers(BlockMap::OwnedBlock block) {
        RequestGroup group(up, 0, plan.up.n);
        for (int rank = 0; rank < plan.up.n; ++rank) {
            header(rank) = {};
            if (plan.takes_part(rank, block)) group.receive(&header(rank), sizeof(BlockHeader), byte_type(), rank);
        }
        co_await group;
        co_return MPI_SUCCESS;
    }
    /// Sends a header to each of these members.
    Task send_headers(BlockMap::OwnedBlock block, BlockHeader what) {
        what.mark = BlockHeader::kMark;
        RequestGroup group(down, plan.up.n, 0);
        for (int rank = 0; rank < plan.up.n; ++rank)
            if (plan.takes_part(rank, block)) group.send(&what, sizeof what, byte_type(), rank);
        co_await group;
        co_return MPI_SUCCESS;
    }
    /// Starts the work on a block.
    void start(const BlockMap::OwnedBlock& block, Moved (*work)(HelperJob&)) {
        BlockJob& job = job_of(block);
        job = BlockJob();
        job.work = work;
        job.system = plan.file.system.get();
        job.buffer = plan.buffer(block);
        job.block = plan.map.extent(block.number);
        job.used = plan.used(block);
        job.gap = plan.gap;
        job.whole = plan.whole;
        job.skip = failed();
        plan.now ? do_now(job) : file::start(job);
    }
    Task finish(BlockMap::OwnedBlock block) {
        BlockJob& job = job_of(block);
        co_await progress::RequestDone{job};
        if (result.system_error == 0) result.system_error = job.moved.system_error;
        co_return MPI_SUCCESS;
    }
    int error() {
        up.note(down.error);
        return up.error;
    }
    BlockJob& job_of(const BlockMap::OwnedBlock& block) { return jobs_[block.turn & 1]; }
    BlockHeader& header(int rank) { return headers_[static_cast<size_t>(rank)]; }

    const ExchangePlan& plan;
    ExchangeResult& result;
    View up, down;

  private:
    size_t size() const { return static_cast<size_t>(plan.up.n); }
    BlockMap::Walk walk_;
    std::vector<BlockHeader> headers_;
    BlockJob jobs_[2];
};

bool is_within(int64_t bytes, int64_t most) { return bytes >= 0 && bytes <= most; }

/// Returns whether a header's lengths are possible for a block, so that memory for them may be taken.
bool is_possible(const BlockHeader& header, int64_t block) {
    return is_within(header.data_bytes, block) && is_within(header.list_bytes, 16 * block + 64);
}

/// Copies the data of a message to their places in the block, and marks these.
void unpack(const std::vector<std::byte>& message, const BlockHeader& header, int64_t block, const BlockBuffer& buffer) {
    PieceListReader list(std::span<const std::byte>(message).first(static_cast<size_t>(header.list_bytes)), block);
    const std::byte* from = message.data() + header.list_bytes;
    const std::byte* const end = message.data() + message.size();
    DepositBits::Marker marker(buffer.bits);
    for (Extent piece = list.next(); piece.bytes > 0 && piece.bytes <= end - from; piece = list.next()) {
        std::memcpy(buffer.data + piece.offset, from, static_cast<size_t>(piece.bytes));
        marker.mark(piece.offset, piece.bytes);
        from += piece.bytes;
    }
}

/// The most messages that an aggregator receives or sends at the same time.
constexpr size_t kMessages = 16;

/// Awaits the oldest message and puts its data into the block.
Task unpack_oldest(Aggregator& aggregator, BlockMap::OwnedBlock block, MessageWindow& window) {
    MessageWindow::BlockMessage& message = window.oldest();
    RequestGroup& requests = message.requests;
    co_await requests;
    if (!aggregator.failed())
        unpack(message.bytes, message.header, aggregator.plan.map.block_bytes(), aggregator.plan.buffer(block));
    window.remove_oldest();
    co_return MPI_SUCCESS;
}

/// Receives the data of members that cannot access this aggregator's buffer, from several of them at the same time.
Task receive_data(Aggregator& aggregator, BlockMap::OwnedBlock block, MessageWindow& window) {
    const int64_t length = aggregator.plan.map.block_bytes();
    for (int rank = 0; rank < aggregator.plan.up.n; ++rank) {
        const BlockHeader header = aggregator.header(rank);
        if (!header.arrived() || header.list_bytes == 0 || !is_possible(header, length)) continue;
        while (!window.admits()) co_await unpack_oldest(aggregator, block, window);
        MessageWindow::BlockMessage& message = window.add();
        message.header = header;
        message.bytes.resize(static_cast<size_t>(header.list_bytes + header.data_bytes));
        window.count();
        message.requests.receive(message.bytes.data(), static_cast<int64_t>(message.bytes.size()), byte_type(), rank);
    }
    while (!window.empty()) co_await unpack_oldest(aggregator, block, window);
    co_return MPI_SUCCESS;
}

/// The lists of members that cannot access this aggregator's buffer, for one block, and the members' requests.
struct WantedLists {
    std::vector<BlockHeader> headers;
    std::vector<std::vector<std::byte>> lists;
};

Task receive_lists(Aggregator& aggregator, BlockMap::OwnedBlock block, WantedLists& wanted) {
    const ExchangePlan& plan = aggregator.plan;
    const auto n = static_cast<size_t>(plan.up.n);
    wanted.headers.assign(n, {});
    wanted.lists.resize(n);
    RequestGroup group(aggregator.up, 0, plan.up.n);
    for (size_t rank = 0; rank < n; ++rank) {
        const BlockHeader header = aggregator.header(static_cast<int>(rank));
        if (!header.arrived() || header.list_bytes == 0 || !is_possible(header, plan.map.block_bytes())) continue;
        wanted.headers[rank] = header;
        wanted.lists[rank].resize(static_cast<size_t>(header.list_bytes));
        group.receive(wanted.lists[rank].data(), header.list_bytes, byte_type(), static_cast<int>(rank));
    }
    co_await group;
    if (plan.whole || aggregator.failed()) co_return MPI_SUCCESS;
    const BlockBuffer buffer = plan.buffer(block);
    for (size_t rank = 0; rank < n; ++rank) {
        if (wanted.headers[rank].list_bytes == 0) continue;
        PieceListReader list(wanted.lists[rank], plan.map.block_bytes());
        DepositBits::Marker marker(buffer.bits);
        for (Extent piece = list.next(); piece.bytes > 0; piece = list.next()) marker.mark(piece.offset, piece.bytes);
    }
    co_return MPI_SUCCESS;
}

/// Copies the data that a list asks for out of the block.
void pack(const BlockBuffer& buffer, const std::vector<std::byte>& wanted, int64_t block, std::byte* to, int64_t bytes) {
    PieceListReader list(wanted, block);
    int64_t at = 0;
    for (Extent piece = list.next(); piece.bytes > 0 && piece.bytes <= bytes - at; piece = list.next()) {
        std::memcpy(to + at, buffer.data + piece.offset, static_cast<size_t>(piece.bytes));
        at += piece.bytes;
    }
}

/// Hands out a block that has been read: each member that has a part in it gets a header, and its data if it cannot access the buffer. The
/// messages stay in `sent`.
Task hand_out(Aggregator& aggregator, BlockMap::OwnedBlock block, const WantedLists& wanted, MessageWindow& sent) {
    co_await aggregator.finish(block);
    const ExchangePlan& plan = aggregator.plan;
    const BlockHeader header{.end = aggregator.job_of(block).end, .mark = BlockHeader::kMark};
    aggregator.down.note(aggregator.up.error);
    for (int rank = 0; rank < plan.up.n; ++rank) {
        if (!plan.takes_part(rank, block)) continue;
        if (!sent.admits()) co_await make_room(sent);
        const int64_t data = wanted.headers[static_cast<size_t>(rank)].data_bytes;
        MessageWindow::BlockMessage& message = sent.add();
        message.bytes.resize(sizeof header + static_cast<size_t>(data));
        sent.count();
        std::memcpy(message.bytes.data(), &header, sizeof header);
        if (aggregator.down.error == MPI_SUCCESS)
            pack(plan.buffer(block), wanted.lists[static_cast<size_t>(rank)], plan.map.block_bytes(),
                 message.bytes.data() + sizeof header, data);
        message.requests.send(message.bytes.data(), static_cast<int64_t>(message.bytes.size()), byte_type(), rank);
    }
    co_return MPI_SUCCESS;
}

}  // namespace

Task renew_cache(File& file, int& system_error) {
    RenewalJob job;
    job.work = renew;
    job.system = file.system.get();
    file::start(job);
    co_await progress::RequestDone{job};
    if (system_error == 0) system_error = job.moved.system_error;
    co_return MPI_SUCCESS;
}

Task write_blocks(const ExchangePlan& plan, ExchangeResult& result) {
    Aggregator aggregator(plan, result);
    MessageWindow received(aggregator.up, kMessages, plan.most);
    BlockMap::OwnedBlock block, previous, following;
    for (bool more = aggregator.next(block); more; previous = block, block = following) {
        co_await aggregator.receive_headers(block);
        co_await receive_data(aggregator, block, received);
        aggregator.start(block, write_marked);
        if (previous.number >= 0) co_await aggregator.finish(previous);
        more = aggregator.next(following);
        if (more && following.turn >= 2) co_await aggregator.send_headers(following, {});
    }
    if (previous.number >= 0) co_await aggregator.finish(previous);
    if (previous.number >= 0 && plan.caches) co_await renew_cache(plan.file, result.system_error);
    co_return aggregator.error();
}

Task read_blocks(const ExchangePlan& plan, ExchangeResult& result) {
    Aggregator aggregator(plan, result);
    MessageWindow sent(aggregator.down, kMessages, plan.most);
    WantedLists wanted[2];
    BlockMap::OwnedBlock block, previous, earlier;
    // The members have stored their writes. What this host cached before that does not show them.
    if (plan.caches) co_await renew_cache(plan.file, result.system_error);
    while (aggregator.next(block)) {
        // The members must have copied the half's last block.
        if (earlier.number >= 0) co_await aggregator.receive_headers(earlier);
        co_await aggregator.receive_headers(block);
        co_await receive_lists(aggregator, block, wanted[block.turn & 1]);
        aggregator.start(block, read_marked);
        // A block that was read at once is handed out before the next one is read.
        const BlockMap::OwnedBlock ready = plan.now ? block : previous;
        if (ready.number >= 0) co_await hand_out(aggregator, ready, wanted[ready.turn & 1], sent);
        earlier = previous;
        previous = block;
    }
    if (!plan.now && previous.number >= 0) co_await hand_out(aggregator, previous, wanted[previous.turn & 1], sent);
    co_await finish_all(sent);
    if (earlier.number >= 0) co_await aggregator.receive_headers(earlier);
    if (previous.number >= 0) co_await aggregator.receive_headers(previous);
    co_return aggregator.error();
}

}  // namespace starling::file
