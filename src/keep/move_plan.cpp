#include "keep/move_plan.h"

#include <algorithm>
#include <utility>

namespace starling::keep {

namespace {

/// The copies of one block that the members have.
struct FoundBlock {
    uint64_t bytes = 0;
    std::vector<int> holders;
    int saver = -1;  ///< the process that saved the block, if it lives
};

struct FoundVersion {
    int owners = 0;
    int counting = 0;  ///< number of members for which the version counts
    std::map<int, FoundBlock> blocks;
};

using Found = std::map<std::string, std::map<int64_t, FoundVersion>>;

Found collect(const std::vector<std::vector<BlockRecord>>& records) {
    Found found;
    for (int rank = 0; rank < static_cast<int>(records.size()); ++rank) {
        for (const BlockRecord& record : records[rank]) {
            FoundVersion& version = found[record.name][record.version];
            version.owners = record.owners;
            if (record.owner == BlockRecord::kVersion) {
                ++version.counting;
                continue;
            }
            FoundBlock& block = version.blocks[record.owner];
            block.bytes = record.bytes;
            block.holders.push_back(rank);
            if (record.is_own) block.saver = rank;
        }
    }
    return found;
}

/// Chooses the keepers of blocks, and counts the memory of each member.
class Planner {
  public:
    Planner(const std::vector<MemberReport>& its_members, const std::vector<int>& its_partners, MovePlan& its_plan)
        : members(its_members), partners(its_partners), used(its_members.size()), wanted(used), plan(its_plan) {
        plan.missing.resize(members.size());
    }

    void count_memory(const FoundVersion& version) {
        for (const auto& [owner, block] : version.blocks)
            for (int holder : block.holders) used[holder] += block.bytes;
        wanted = used;
    }

    void add(const std::string& name, int64_t number, const FoundVersion& version) {
        PlannedVersion& planned = plan.versions[name][number];
        planned.owners = version.owners;
        planned.keepers.resize(version.owners, {-1, -1});
        for (const auto& [owner, block] : version.blocks) {
            const int first = keeper_of(version, owner, block);
            const int second = partners[first];
            BlockTransfer transfer{name, number, owner, block.holders[0], first, block.bytes};
            const bool has_first = provide(transfer, block);
            if (has_first) transfer.from = first;
            transfer.to = second;
            const bool has_second = second >= 0 && provide(transfer, block);
            planned.keepers[owner] = settle(block, has_first ? first : -1, has_second ? second : -1);
        }
    }

  private:
    int keeper_of(const FoundVersion& version, int owner, const FoundBlock& block) const {
        if (version.owners == static_cast<int>(members.size())) return owner;
        return block.saver >= 0 ? block.saver : block.holders[0];
    }

    /// Returns whether the member gets or has the block.
    bool provide(BlockTransfer& transfer, const FoundBlock& block) {
        const int to = transfer.to;
        if (std::find(block.holders.begin(), block.holders.end(), to) != block.holders.end()) return true;
        // Relays would wait for each other: a block comes from a member that has it before the move.
        if (std::find(block.holders.begin(), block.holders.end(), transfer.from) == block.holders.end())
            transfer.from = block.holders[0];
        wanted[to] += block.bytes;
        if (used[to] + block.bytes > members[to].bound) {
            plan.missing[to] = wanted[to] - members[to].bound;
            return false;
        }
        used[to] += block.bytes;
        plan.transfers.push_back(transfer);
        return true;
    }

    /// Returns the keepers of a block: the chosen ones, else members that have it already.
    static BlockKeepers settle(const FoundBlock& block, int first, int second) {
        for (int holder : block.holders) {
            if (first < 0 && holder != second) first = holder;
            if (second < 0 && holder != first) second = holder;
        }
        return {first, second};
    }

    const std::vector<MemberReport>& members;
    const std::vector<int>& partners;
    std::vector<uint64_t> used;    ///< bytes that a member has, and gets
    std::vector<uint64_t> wanted;  ///< `used`, and bytes that do not fit the member's bound
    MovePlan& plan;
};

}  // namespace

MovePlan plan_move(const std::vector<MemberReport>& members, const std::vector<std::vector<BlockRecord>>& records,
                   const std::vector<int>& partners) {
    const auto stores =
        std::count_if(members.begin(), members.end(), [](const MemberReport& member) { return member.has_store; });
    Found found = collect(records);
    MovePlan plan;
    Planner planner(members, partners, plan);
    for (auto& [name, versions] : found) {
        std::erase_if(versions, [&](const auto& version) { return version.second.counting < stores; });
        for (const auto& [number, version] : versions) planner.count_memory(version);
    }
    for (const auto& [name, versions] : found)
        for (const auto& [number, version] : versions) planner.add(name, number, version);
    return plan;
}

}  // namespace starling::keep
