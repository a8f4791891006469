#include "keep/move.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "keep/message.h"
#include "keep/partners.h"
#include "keep/store_call.h"
#include "mpi-ext.h"

namespace starling::keep {

namespace {

constexpr int kMoveTag = 1;

/// The steps of a move: the new communicator, reports, the plan, copies, agreement.
class Move {
  public:
    Move(KeepStore& its_store, MPI_Comm its_comm) : store(its_store), comm(its_comm), has_store(store.wire != MPI_COMM_NULL) {}
    ~Move() {
        if (wire != MPI_COMM_NULL) MPI_Comm_free(&wire);
    }
    Move(const Move&) = delete;

    MoveResult run() {
        if (has_store) settle(store);
        if (const int error = create_wire()) return {refuse(error), false};
        try {
            copy();
        } catch (const std::bad_alloc&) {
            has_memory = false;
            abandon();
        }
        enum : int { kOk = 1, kHasMemory = 2 };
        int flag = (failed ? 0 : kOk) | (has_memory ? kHasMemory : 0);
        const int code = MPIX_Comm_agree(wire, &flag);
        if (!(flag & kHasMemory))
            return {fail(MPI_ERR_NO_MEM, "the store has not moved, because a process has no memory for the copies of blocks"),
                    false};
        if (!(flag & kOk)) return {refuse(code ? code : MPIX_ERR_REVOKED), false};
        commit();
        return {report_missing(), true};
    }

  private:
    /// Creates the store's communicator. Returns an error on all members if one of them has failed.
    int create_wire() {
        // If a member dies in another constructor, this may succeed on some members and fail on others, which then would not meet again.
        if (const int code = MPIX_Comm_shrink(comm, &wire)) return code;
        MPI_Comm_set_errhandler(wire, MPI_ERRORS_RETURN);
        int wanted = 0;
        MPI_Comm_size(comm, &wanted);
        MPI_Comm_size(wire, &size);
        MPI_Comm_rank(wire, &rank);
        return size == wanted ? MPI_SUCCESS : MPIX_ERR_PROC_FAILED;
    }

    static int refuse(int code) {
        int error = MPI_SUCCESS;
        MPI_Error_class(code, &error);
        if (error == MPIX_ERR_PROC_FAILED || error == MPIX_ERR_REVOKED)
            return fail(error,
                        "the store has not moved, because a process of the new communicator has failed or revoked it; shrink "
                        "it and move again");
        return fail(error, "the store has not moved, because its own communicator could not be created");
    }

    /// Ends the communication of all members.
    void abandon() {
        failed = true;
        MPIX_Comm_revoke(wire);
    }

    bool check(int code) {
        if (code && !failed) abandon();
        return !failed;
    }

    void copy() {
        if (!exchange_reports() || !exchange_records()) return;
        std::vector<int> hosts(size);
        std::transform(members.begin(), members.end(), hosts.begin(), [](const MemberReport& member) { return member.host; });
        partners = partners_of(hosts);
        plan = plan_move(members, records, partners);
        drop_unplanned();
        transfer();
        prepare();
    }

    /// Returns the lowest rank on this process's host; -1 if it is not known.
    int find_host() {
        MPI_Comm node = MPI_COMM_NULL;
        if (!check(MPI_Comm_split_type(wire, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node))) return -1;
        MPI_Group here, all;
        int first = 0, host = -1;
        MPI_Comm_group(node, &here);
        MPI_Comm_group(wire, &all);
        MPI_Group_translate_ranks(here, 1, &first, all, &host);
        MPI_Group_free(&here);
        MPI_Group_free(&all);
        MPI_Comm_free(&node);
        return host;
    }

    bool exchange_reports() {
        members.resize(size);
        own = list_records();
        MemberReport mine;
        mine.bound = store.bound;
        mine.host = find_host();
        mine.has_store = has_store;
        mine.records = static_cast<int32_t>(own.size());
        return !failed && check(MPI_Allgather(&mine, sizeof mine, MPI_BYTE, members.data(), sizeof mine, MPI_BYTE, wire));
    }

    std::vector<BlockRecord> list_records() const {
        std::vector<BlockRecord> list;
        for (const auto& [name, versions] : store.names) {
            for (const KeptVersion& version : versions) {
                BlockRecord record;
                std::memcpy(record.name, name.data(), name.size());
                record.version = version.number;
                record.owners = version.owners;
                list.push_back(record);
                for (const auto& [owner, block] : version.blocks) {
                    record.owner = owner;
                    record.bytes = block.size();
                    record.is_own = owner == version.own;
                    list.push_back(record);
                }
            }
        }
        return list;
    }

    bool exchange_records() {
        std::vector<int> counts(size), places(size);
        int sum = 0;
        for (int member = 0; member < size; ++member) {
            counts[member] = members[member].records;
            places[member] = std::exchange(sum, sum + counts[member]);
        }
        std::vector<BlockRecord> all(sum);
        MPI_Datatype type;
        MPI_Type_contiguous(sizeof(BlockRecord), MPI_BYTE, &type);
        MPI_Type_commit(&type);
        const int code = MPI_Allgatherv(own.data(), static_cast<int>(own.size()), type, all.data(), counts.data(),
                                        places.data(), type, wire);
        MPI_Type_free(&type);
        if (!check(code)) return false;
        for (int member = 0; member < size; ++member)
            records.emplace_back(all.begin() + places[member], all.begin() + places[member] + counts[member]);
        return true;
    }

    /// Drops the versions that do not count, which no later move can bring back.
    void drop_unplanned() {
        for (auto& [name, versions] : store.names)
            std::erase_if(versions, [&, &name = name](const KeptVersion& version) {
                const auto planned = plan.versions.find(name);
                return planned == plan.versions.end() || !planned->second.contains(version.number);
            });
        std::erase_if(store.names, [](const auto& name) { return name.second.empty(); });
    }

    void transfer() {
        std::vector<MPI_Request> requests;
        for (const BlockTransfer& transfer : plan.transfers)
            if (transfer.to == rank) arrivals.emplace_back(&transfer, BlockMemory(transfer.bytes));
        requests.reserve(plan.transfers.size());
        for (auto& [transfer, block] : arrivals)
            if (block.size() && !failed)
                check(MPI_Irecv_c(block.data(), static_cast<MPI_Count>(block.size()), MPI_BYTE, transfer->from, kMoveTag, wire,
                                  &requests.emplace_back(MPI_REQUEST_NULL)));
        for (const BlockTransfer& transfer : plan.transfers) {
            if (transfer.from != rank || !transfer.bytes || failed) continue;
            const BlockMemory& block = store.find(transfer.name, transfer.version)->blocks.at(transfer.owner);
            check(MPI_Isend_c(block.data(), static_cast<MPI_Count>(block.size()), MPI_BYTE, transfer.to, kMoveTag, wire,
                              &requests.emplace_back(MPI_REQUEST_NULL)));
        }
        for (MPI_Request& request : requests) check(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }

    /// Builds what the store has after the move, so that nothing has to be allocated after the agreement.
    void prepare() {
        for (int member = 0; member < size; ++member)
            if (partners[member] == rank) wards.push_back(member);
        for (auto& [name, versions] : plan.versions)
            for (auto& [number, planned] : versions) prepare_version(name, number, planned);
    }

    /// Adds the blocks of a version that have arrived. Those that this process had and keeps follow in commit().
    void prepare_version(const std::string& name, int64_t number, PlannedVersion& planned) {
        KeptVersion& version = moved[name].emplace_back();
        version.number = number;
        version.owners = planned.owners;
        for (auto& [transfer, block] : arrivals)
            if (transfer->name == name && transfer->version == number) version.blocks[transfer->owner] = std::move(block);
        if (const KeptVersion* before = store.find(name, number)) {
            version.own = before->own;
            for (const auto& [owner, block] : before->blocks) {
                const BlockKeepers& keepers = planned.keepers[owner];
                if (keepers[0] == rank || keepers[1] == rank) version.blocks[owner];
            }
        }
        if (version.own < 0 && planned.owners == size) version.own = rank;
        version.keepers = std::move(planned.keepers);
    }

    /// Changes the store after all members have agreed. No member may fail here.
    void commit() noexcept {
        for (auto& [name, versions] : store.names)
            for (KeptVersion& version : versions) keep_blocks(name, version);
        store.names.swap(moved);
        if (store.wire != MPI_COMM_NULL) MPI_Comm_free(&store.wire);
        store.wire = std::exchange(wire, MPI_COMM_NULL);
        store.is_closed = false;
        store.comm = comm;
        store.rank = rank;
        store.size = size;
        store.partners.swap(partners);
        store.wards.swap(wards);
    }

    /// Moves the blocks of a version that this process keeps, for which prepare_version() has made places.
    void keep_blocks(const std::string& name, KeptVersion& before) noexcept {
        std::vector<KeptVersion>& versions = moved.find(name)->second;
        const auto version = std::find_if(versions.begin(), versions.end(),
                                          [&](const KeptVersion& kept) { return kept.number == before.number; });
        for (auto& [owner, block] : before.blocks) {
            const auto place = version->blocks.find(owner);
            if (place != version->blocks.end()) place->second = std::move(block);
        }
    }

    int report_missing() const {
        const auto lacks = std::find_if(plan.missing.begin(), plan.missing.end(), [](uint64_t bytes) { return bytes > 0; });
        if (lacks == plan.missing.end()) return MPI_SUCCESS;
        return fail(MPI_ERR_NO_MEM,
                    "the store has moved, but rank %d needs %llu bytes more than its bound for second copies; some blocks have "
                    "one copy until two later versions are saved",
                    static_cast<int>(lacks - plan.missing.begin()), static_cast<unsigned long long>(*lacks));
    }

    KeepStore& store;
    const MPI_Comm comm;
    const bool has_store;
    MPI_Comm wire = MPI_COMM_NULL;
    int rank = 0, size = 0;
    bool failed = false, has_memory = true;
    std::vector<int> partners, wards;
    std::vector<MemberReport> members;              ///< by rank
    std::vector<BlockRecord> own;                   ///< this process's records
    std::vector<std::vector<BlockRecord>> records;  ///< by rank
    MovePlan plan;
    std::vector<std::pair<const BlockTransfer*, BlockMemory>> arrivals;
    VersionsByName moved;  ///< the store's versions after the move
};

}  // namespace

MoveResult move_store(KeepStore& store, MPI_Comm comm) { return Move(store, comm).run(); }

}  // namespace starling::keep
