#include "file/two_phase.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/config.h"
#include "base/error.h"
#include "collective/collective.h"
#include "collective/collective_request.h"
#include "collective/communicator/creation.h"
#include "comm/error_codes.h"
#include "file/exchange_plan.h"
#include "file/helper.h"
#include "file/transfer.h"
#include "link/job.h"
#include "link/peer.h"
#include "progress/blocking_wait.h"

namespace starling::file {

namespace {

using collective::byte_type;
using collective::Task;
using collective::View;

/// Average length of pieces from which each member moves its own data, unless hints decide.
constexpr int64_t kDirectPiece = 32 << 10;
/// Least average size of pieces, bytes, with which reads of cached data are direct. Each piece is a system call of some microseconds.
constexpr int64_t kCachedPiece = 512;
/// A range with more than this many bytes per byte of data is not worth the exchange.
constexpr int64_t kSparse = 64;
/// Reads take whole blocks if at least one byte in so many is wanted, and gaps of up to this length.
constexpr int64_t kWholeShare = 4, kReadGap = 64 << 10;
/// Blocks per aggregator that even a short range is cut into, so that copies and system calls overlap.
constexpr int kTurns = 4;
/// Longest block on one host: the processors' caches hold the halves of all aggregators. Where processes share cores, each block costs
/// changes between them, so blocks are longer.
constexpr int64_t kCachedBlock = 256 << 10, kCrowdedBlock = 4 << 20;
/// Aggregators on one host, on a file system that several processes may write to at once.
constexpr int kAggregators = 4;

/// Bits of the tags of an exchange's messages. Only persistent operations have tags with these bits too, and a file's communicator has
/// none. The tag of the call, and its second tag, belong to the collective operations at both ends of the exchange.
constexpr int kUpTag = 0x40000000, kDownTag = 0x60000000;
static_assert((kUpTag | kDownTag) == kTwoPhaseTags);

enum class Strategy : uint8_t { nothing, direct, two_phases };

const char* name_of(Strategy strategy) {
    return strategy == Strategy::nothing ? "nothing" : strategy == Strategy::direct ? "direct" : "two phases";
}

/// Estimates the number of runs of the file from the first ones.
int64_t estimate_pieces(const FileView& view, int64_t position, int64_t bytes) {
    constexpr int kSample = 64;
    ExtentCursor cursor(view, position, bytes);
    int64_t seen = 0;
    int pieces = 0;
    while (pieces < kSample) {
        const Extent run = cursor.next();
        if (run.bytes == 0) break;
        seen += run.bytes;
        ++pieces;
    }
    return seen == 0 ? 0 : pieces < kSample ? pieces : std::max<int64_t>(1, bytes / std::max<int64_t>(1, seen / pieces));
}

/// Returns whether this host's cache has the data of a read, as far as some of its bytes, evenly spread, show.
bool is_in_cache(const File& file, const FileTransfer& transfer) {
    constexpr int64_t kSamples = 16;
    const auto last = static_cast<int64_t>(transfer.bytes()) - 1;
    for (int64_t i = kSamples - 1; i >= 0; --i)
        if (!file.system->is_cached(file_offset(*transfer.view, transfer.position + last / (kSamples - 1) * i))) return false;
    return true;
}

bool on_one_host(const View& v) { return !v.exchange->hosts() && !v.exchange->each_has_its_host(); }

/// Returns the range of this member's data in the file. Elements of a filetype that interleave make it unordered.
MemberRange published_range(const File& file, const FileTransfer& transfer, bool asks_cache) {
    MemberRange mine;
    const auto bytes = static_cast<int64_t>(transfer.bytes());
    const datatype::Datatype& filetype = *transfer.view->filetype;
    mine.unit = std::max<int64_t>(1, file.layout.unit);
    if (file.atomic) mine.flags |= MemberRange::kAtomic;
    if (progress::core_is_crowded()) mine.flags |= MemberRange::kCrowded;
    if (bytes == 0 || filetype.size == 0) return mine;
    mine.bytes = bytes;
    mine.offset = file_offset(*transfer.view, transfer.position);
    mine.bytes_of_file = file_offset(*transfer.view, transfer.position + bytes - 1) + 1 - mine.offset;
    mine.pieces = estimate_pieces(*transfer.view, transfer.position, bytes);
    if (filetype.extent < filetype.true_extent || mine.bytes_of_file < bytes) mine.flags |= MemberRange::kUnordered;
    if (!asks_cache || !is_in_cache(file, transfer)) mine.flags |= MemberRange::kRemote;
    return mine;
}

/// What follows from all members' ranges together.
struct RangeSummary {
    std::vector<Extent> ranges;
    int64_t bytes = 0, pieces = 0, unit = 1;
    uint32_t flags = 0;
    int failed = -1;  ///< lowest rank with wrong arguments; -1: none
    bool interleaved = false;
    Extent all;

    explicit RangeSummary(const std::vector<MemberRange>& members) {
        for (size_t rank = 0; rank < members.size(); ++rank) {
            const MemberRange& member = members[rank];
            if (member.error && failed < 0) failed = static_cast<int>(rank);
            bytes += member.bytes;
            pieces += member.pieces;
            unit = std::max(unit, member.unit);
            flags |= member.flags;
            if (member.bytes > 0) ranges.push_back(member.range());
        }
        std::sort(ranges.begin(), ranges.end(), [](const Extent& a, const Extent& b) { return a.offset < b.offset; });
        int64_t high = 0;
        for (const Extent& range : ranges) {
            if (&range != ranges.data() && range.offset < high) interleaved = true;
            high = std::max(high, range.end());
        }
        if (!ranges.empty()) all = {ranges[0].offset, high - ranges[0].offset};
    }
};

Strategy choose(const RangeSummary& all, Automatic hint) {
    if (all.bytes == 0) return Strategy::nothing;
    constexpr uint32_t kAlone = MemberRange::kUnordered | MemberRange::kAtomic;
    if (all.flags & kAlone || hint == Automatic::disable) return Strategy::direct;
    if (hint == Automatic::enable) return Strategy::two_phases;
    if (!(all.flags & MemberRange::kRemote) && all.bytes >= all.pieces * kCachedPiece) return Strategy::direct;
    if (all.bytes >= all.pieces * kDirectPiece) return Strategy::direct;
    if (!all.interleaved && all.bytes >= all.all.bytes) return Strategy::direct;
    return all.all.bytes / kSparse > all.bytes ? Strategy::direct : Strategy::two_phases;
}

/// One member's vote on the result of a collective transfer. The largest vote is that of the lowest failed rank.
int64_t vote_of(int rank, int size, int system_error, int error) {
    return !system_error && !error ? 0 : int64_t{size - rank} << 32 | int64_t{system_error & 0xffff} << 16 | (error & 0xffff);
}

/// Agrees on the result of a transfer. `system_error`: an errno value of this member's system calls; `error`: another error of it, with
/// its text.
Task agree_on_transfer(View v, const File& file, int system_error, int error, bool writes) {
    const char* const doing = writes ? "write to" : "read";
    if (system_error && !error) error = fail_of(system_error, doing, file.name);
    const collective::ErrorHere here(error);
    int64_t mine = vote_of(v.me, v.n, system_error, error), first = 0;
    const int failed =
        co_await collective::allreduce(v, &mine, &first, 1, datatype::predefined(MPI_INT64_T), datatype::predefined(MPI_MAX));
    if (error || failed || first == 0) co_return here.or_else(failed);
    const auto rank = v.n - static_cast<int>(first >> 32);
    const auto its_class = static_cast<int>(first & 0xffff);
    const auto its_error = static_cast<int>(first >> 16 & 0xffff);
    co_return fail(its_class, "rank %d could not %s %s: %s", rank, doing, file.name.c_str(),
                   its_error ? std::strerror(its_error) : comm::text_of(its_class).c_str());
}

/// Moves this member's own data, as an independent transfer does.
Task move_alone(File& file, const FileTransfer& transfer, bool writes, int64_t& moved) {
    return writes ? write_task(file, transfer, moved) : read_task(file, transfer, moved);
}

/// Maps the aggregators' buffers.
void map_buffers(ExchangePlan& plan, TwoPhaseBuffers& own) {
    const comm::Group& group = plan.file.comm->local_group();
    for (const int rank : plan.aggregators) {
        std::byte* memory = nullptr;
        const uint64_t address = plan.members[static_cast<size_t>(rank)].buffer;
        if (rank == plan.me()) {
            memory = own.memory();
        } else if (address && link::on_this_host(group.at(rank))) {
            link::Peer* const peer = group.at(rank).job->peer(group.at(rank).rank);
            if (peer) memory = peer->shm_path.exchanged(address, TwoPhaseBuffers::memory_for(plan.most));
        }
        plan.memory.push_back(memory);
    }
}

/// Runs the exchange on this member, and on an aggregator beside it the aggregator's part.
Task run_exchange(ExchangePlan& plan, bool writes, ExchangeResult& result) {
    collective::CollectiveRequest aggregation;
    const bool aggregates = std::find(plan.aggregators.begin(), plan.aggregators.end(), plan.me()) != plan.aggregators.end();
    Task own_blocks = writes ? write_blocks(plan, result) : read_blocks(plan, result);
    if (aggregates) collective::start(std::move(own_blocks), aggregation);
    Task part = writes ? deposit_all(plan, result) : fetch_all(plan, result);
    const collective::ErrorHere here(co_await part);
    if (!aggregates) co_return here.or_else(MPI_SUCCESS);
    co_await progress::RequestDone{aggregation};
    co_return here.or_else(progress::error_of(aggregation));
}

/// Returns the length for which an aggregator's half has memory.
int64_t half_bytes(const FileHints& hints) { return std::max<int64_t>(hints.buffer_bytes / 2, 4096) / 64 * 64; }

/// Returns the longest block of an exchange, for which halves of `most` bytes have space. No two aggregators write to one stripe.
int64_t longest_block(int64_t most, const RangeSummary& all, const View& v) {
    if (!on_one_host(v)) return most;
    const int64_t wanted = all.flags & MemberRange::kCrowded ? kCrowdedBlock : kCachedBlock;
    return std::min(most, std::max(wanted, all.unit));
}

/// Renews the caches of all members' hosts. After the first MPI_File_sync each member knows whether another one does so for it.
Task renew_all_caches(File& file, View v, bool writes) {
    int system_error = 0;
    if (file.sync_leader < 0 || file.sync_leader == v.me) co_await renew_cache(file, system_error);
    co_return co_await agree_on_transfer(v, file, system_error, MPI_SUCCESS, writes);
}

Task exchange(File& file, TransferViews views, const FileTransfer& transfer, const std::vector<MemberRange>& members,
              const RangeSummary& all, int64_t most, bool writes, int64_t& moved, int64_t& blocks) {
    TwoPhaseBuffers& buffers = *file.buffers;
    const View& v = views.ranges;
    const int64_t longest = longest_block(most, all, v);
    std::vector<Extent> ranges = all.ranges;
    const auto aggregators = static_cast<int>(buffers.aggregators().size());
    const bool coherent = file.caching == Caching::none;
    ExchangePlan plan{
        .file = file,
        .transfer = transfer,
        .members = members,
        .aggregators = buffers.aggregators(),
        .map = BlockMap(ranges, choose_block(all.all, longest, all.unit, aggregators, kTurns), aggregators),
        .most = most,
        .gap = coherent ? kReadGap : 0,
        .whole = coherent && all.all.bytes / kWholeShare <= all.bytes,
        .now = transfer.blocking && coherent && on_one_host(v),
        .caches = caches_differ(file),
        .up = v,
        .down = v,
    };
    plan.up.tag = v.tag | kUpTag;
    plan.down.tag = v.tag | kDownTag;
    map_buffers(plan, buffers);
    blocks = plan.map.blocks();
    if (plan.caches) {
        // Independent writes that are still in a member's cache must not reach the file after this transfer.
        if (const int error = co_await renew_all_caches(file, views.renewed, writes)) co_return error;
    }
    ExchangeResult result;
    const int failed = co_await run_exchange(plan, writes, result);
    const int error = co_await agree_on_transfer(views.result, file, result.system_error, failed, writes);
    if (error) buffers.spoil();
    moved = result.moved;
    if (error || !plan.caches || !writes || !file.may_read()) co_return error;
    co_return co_await renew_all_caches(file, views.shown, writes);
}

void report(const File& file, Strategy strategy, const RangeSummary& all, int64_t blocks, bool writes, uint64_t ns) {
    const TwoPhaseBuffers& buffers = *file.buffers;
    const bool exchanged = strategy == Strategy::two_phases;
    std::fprintf(stderr,
                 "starling: file %s: collective %s: %s, %zu aggregators on %" PRId64 " hosts, %" PRId64 " blocks, %" PRId64
                 " bytes in %" PRId64 " pieces, %s locks%s, %.3f ms\n",
                 file.name.c_str(), writes ? "write" : "read", name_of(strategy), exchanged ? buffers.aggregators().size() : 0,
                 exchanged ? buffers.aggregator_hosts() : 0, blocks, all.bytes, all.pieces,
                 all.flags & MemberRange::kAtomic ? "with" : "no", exchanged && caches_differ(file) ? ", caches renewed" : "",
                 static_cast<double>(ns) / 1e6);
}

/// Makes this member an aggregator with memory for two blocks of `most` bytes, if it is one of the file's aggregators.
int prepare_aggregator(File& file, View& v, int64_t most) {
    TwoPhaseBuffers& buffers = *file.buffers;
    int wanted = file.hints.aggregators;
    if (wanted == 0 && file.hints.placement.empty() && on_one_host(v) && file.caching == Caching::none) wanted = kAggregators;
    buffers.choose_aggregators(*v.exchange, wanted, file.hints.placement, file.host_names);
    const std::vector<int>& all = buffers.aggregators();
    if (std::find(all.begin(), all.end(), v.me) == all.end() || buffers.provide(most)) return MPI_SUCCESS;
    return fail(MPI_ERR_NO_MEM, "there is no memory for the %" PRId64 " bytes of a collective buffer (hint cb_buffer_size)",
                file.hints.buffer_bytes);
}

Task move_together(File& file, TransferViews views, FileTransfer transfer, int error, int64_t& moved, bool writes) {
    if (!error && writes) error = check_stream(transfer);
    const collective::ErrorHere given(error);
    View& v = views.ranges;
    moved = 0;
    if (v.n == 1) {
        if (error) co_return given.or_else(error);
        co_return co_await move_alone(file, transfer, writes, moved);
    }
    const uint64_t began = now_ns();
    if (!file.buffers) file.buffers = std::make_shared<TwoPhaseBuffers>();
    const std::shared_ptr<TwoPhaseBuffers> buffers = file.buffers;
    collective::QueueTurn turn(buffers->turns);
    co_await turn;
    // Another thread may set hints while this operation waits. The buffers and the exchange must have the same ones.
    const int64_t most = half_bytes(file.hints);
    const Automatic hint = writes ? file.hints.collective_write : file.hints.collective_read;
    const collective::ErrorHere here(error ? given.or_else(error) : prepare_aggregator(file, v, most));
    const bool asks_cache = !writes && hint == Automatic::automatic && caches_differ(file);
    MemberRange mine = error ? MemberRange() : published_range(file, transfer, asks_cache);
    mine.error = here.or_else(MPI_SUCCESS);
    mine.buffer = buffers->shared_address();
    std::vector<MemberRange> members(static_cast<size_t>(v.n));
    const int failed = co_await collective::allgather(v, &mine, sizeof mine, byte_type(),
                                                      collective::Blocks(members.data(), sizeof mine, byte_type()));
    if (failed) co_return co_await agree_on_transfer(views.result, file, 0, here.or_else(failed), writes);
    const RangeSummary all(members);
    if (all.failed >= 0) {
        if (mine.error) co_return here.or_else(mine.error);
        const int its = members[static_cast<size_t>(all.failed)].error;
        co_return fail(its, "rank %d cannot take part in the collective transfer: %s", all.failed, comm::text_of(its).c_str());
    }
    const Strategy strategy = choose(all, hint);
    int64_t blocks = 0;
    int result = MPI_SUCCESS;
    if (strategy == Strategy::direct) {
        const int alone = co_await move_alone(file, transfer, writes, moved);
        result = co_await agree_on_transfer(views.result, file, 0, alone, writes);
    } else if (strategy == Strategy::two_phases) {
        result = co_await exchange(file, views, transfer, members, all, most, writes, moved, blocks);
    }
    if (config().file_report && v.me == 0) {
        const collective::ErrorHere outcome(result);
        report(file, strategy, all, blocks, writes, now_ns() - began);
        result = outcome.or_else(MPI_SUCCESS);
    }
    co_return result;
}

}  // namespace

TransferViews TransferViews::draw(collective::Exchange& exchange) {
    TransferViews drawn;
    drawn.ranges = View::all(exchange);
    for (View* const view : {&drawn.renewed, &drawn.result, &drawn.shown}) {
        *view = View::all(exchange);
        exchange.last_was_own();
    }
    return drawn;
}

Task write_together(File& file, TransferViews views, FileTransfer transfer, int error, int64_t& moved) {
    return move_together(file, views, transfer, error, moved, true);
}

Task read_together(File& file, TransferViews views, FileTransfer transfer, int error, int64_t& moved) {
    return move_together(file, views, transfer, error, moved, false);
}

}  // namespace starling::file
