// The plan of a move: which versions count, which process keeps which block from now on, and which copies must be made. All processes compute
// the same plan from the same lists of blocks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "keep/starling_keep.h"

namespace starling::keep {

/// What each process of the new communicator reports about itself.
struct MemberReport {
    uint64_t bound = 0;     ///< most bytes of blocks
    int32_t host = 0;       ///< equal on processes of one host
    int32_t has_store = 0;  ///< 0: a process that has just created its store
    int32_t records = 0;    ///< number of its BlockRecords
    int32_t unused = 0;
};

/// A version that counts for a process (`owner` is -1), or a block that it keeps.
struct BlockRecord {
    static constexpr int32_t kVersion = -1;
    char name[STARLING_KEEP_MAX_NAME + 1] = {};
    int64_t version = 0;
    uint64_t bytes = 0;
    int32_t owners = 0;
    int32_t owner = kVersion;
    int32_t is_own = 0;  ///< whether the process that reports the block saved it
    int32_t unused = 0;
};

/// The ranks that keep the copies of a block. -1: none.
using BlockKeepers = std::array<int, 2>;

struct PlannedVersion {
    int owners = 0;
    std::vector<BlockKeepers> keepers;  ///< by owner
};

struct BlockTransfer {
    std::string name;
    int64_t version;
    int owner, from, to;
    uint64_t bytes;
};

struct MovePlan {
    std::map<std::string, std::map<int64_t, PlannedVersion>> versions;  ///< those that count
    std::vector<BlockTransfer> transfers;
    std::vector<uint64_t> missing;  ///< by rank: bytes of copies that its bound forbids
};

/// Returns the plan for members with these reports and records, both by rank.
MovePlan plan_move(const std::vector<MemberReport>& members, const std::vector<std::vector<BlockRecord>>& records,
                   const std::vector<int>& partners);

}  // namespace starling::keep
