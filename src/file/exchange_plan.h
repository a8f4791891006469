// What all members of a collective transfer know after the exchange of their ranges, and from which they derive the same steps.
#pragma once

#include <cstdint>
#include <vector>

#include "collective/core/view.h"
#include "file/block_map.h"
#include "file/file.h"
#include "file/two_phase_buffers.h"

namespace starling::file {

/// What a member publishes at the start of a collective transfer.
struct MemberRange {
    int64_t offset = 0, bytes_of_file = 0;  ///< range of the file that holds its data
    int64_t bytes = 0;                      ///< its data
    int64_t pieces = 0;                     ///< number of runs of the file, estimated from the first ones
    int64_t unit = 1;                       ///< FileLayout::unit, as this member's driver has it
    uint64_t buffer = 0;  ///< address of its buffer as an aggregator, if other processes of its host can map it
    int32_t error = 0;    ///< error class of wrong arguments
    uint32_t flags = 0;
    static constexpr uint32_t kUnordered = 1;  ///< flag: its runs do not increase in the file
    static constexpr uint32_t kAtomic = 2;     ///< flag: atomic mode
    static constexpr uint32_t kCrowded = 4;    ///< flag: other processes run on its core
    static constexpr uint32_t kRemote = 8;  ///< flag: the data that it reads are not, or not known to be, in its host's cache
    Extent range() const { return {offset, bytes_of_file}; }
};

/// The message of a member to an aggregator, and back, for each block in which the member's range has a part.
struct BlockHeader {
    int64_t list_bytes = 0;  ///< length of the list of pieces (file/piece_list.h) that follows; 0: none
    int64_t data_bytes = 0;  ///< length of the data that follow the list, or that the list asks for
    int64_t end = 0;         ///< reads: offset up to which the file has data, as far as this block shows
    /// Whether a header was received: in place of one, a member with an error sends a marker, which is shorter.
    bool arrived() const { return mark == kMark; }
    static constexpr uint64_t kMark = 0x426c6f636b486561;
    uint64_t mark = 0;
};

/// One collective transfer by two phases. Lives in the frame of the transfer's task while its other tasks run.
struct ExchangePlan {
    File& file;
    FileTransfer transfer;
    const std::vector<MemberRange>& members;
    const std::vector<int>& aggregators;  ///< ranks
    BlockMap map;
    int64_t most;                      ///< bytes for which the aggregators' halves have memory
    int64_t gap;                       ///< reads: a gap of up to this length between wanted bytes is read, too
    bool whole;                        ///< reads: whether whole blocks are read, without a look at the wanted bytes
    bool now;                          ///< whether aggregators make the system calls in the calling thread
    bool caches;                       ///< whether some members have caches of the file of their own
    collective::View up;               ///< messages to aggregators
    collective::View down;             ///< messages from aggregators
    std::vector<std::byte*> memory{};  ///< the aggregators' buffers, as this process can access them; null: it cannot

    int me() const { return up.me; }
    int aggregator(const BlockMap::OwnedBlock& block) const { return aggregators[static_cast<size_t>(block.owner)]; }
    /// Returns whether a member's range has a part in the block.
    bool takes_part(int rank, const BlockMap::OwnedBlock& block) const {
        const MemberRange& member = members[static_cast<size_t>(rank)];
        const Extent extent = map.extent(block.number);
        return member.bytes > 0 && member.offset < extent.end() && member.range().end() > extent.offset;
    }
    /// Returns the part of the block that may have data.
    Extent used(const BlockMap::OwnedBlock& block) const {
        const Extent block_extent = map.extent(block.number), all = map.all();
        const int64_t first = std::max(block_extent.offset, all.offset);
        return {first, std::min(block_extent.end(), all.end()) - first};
    }
    /// Returns the aggregator's half for the block, as this process can access it.
    BlockBuffer buffer(const BlockMap::OwnedBlock& block) const {
        std::byte* const base = memory[static_cast<size_t>(block.owner)];
        return base ? TwoPhaseBuffers::half(base, most, block.turn) : BlockBuffer();
    }
};

/// Results of the tasks of one process in a transfer.
struct ExchangeResult {
    int64_t moved = 0;
    int system_error = 0;  ///< first error of this process's system calls
};

/// The part of each member: copies its data to or from the buffers of the aggregators.
collective::Task deposit_all(const ExchangePlan& plan, ExchangeResult& result);
collective::Task fetch_all(const ExchangePlan& plan, ExchangeResult& result);
/// The part of an aggregator: collects its blocks and writes them, or reads them and hands out their data.
collective::Task write_blocks(const ExchangePlan& plan, ExchangeResult& result);
collective::Task read_blocks(const ExchangePlan& plan, ExchangeResult& result);

/// Stores this process's writes where other hosts see them, and drops what its host caches of the file. `system_error`: an errno value,
/// set if it was 0.
collective::Task renew_cache(File& file, int& system_error);

}  // namespace starling::file
