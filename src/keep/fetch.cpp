#include "keep/fetch.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <vector>

#include "keep/message.h"
#include "keep/store_call.h"
#include "mpi-ext.h"

namespace starling::keep {

namespace {

enum : int { kLengthTag = 4, kBlockTag = 5 };

/// What each process wants, known to all.
struct FetchRequest {
    uint64_t arguments = 0;  ///< hash of name and version
    uint64_t room = 0;       ///< size of the memory at the address
    uint64_t found = 0;      ///< hash of the version that the process has, and of its keepers; 0: it has none
    int32_t owner = MPI_PROC_NULL;
    int32_t unused = 0;
};

/// Returns a hash of all that processes must know alike of a version, to find who sends and who receives.
uint64_t layout_of(const KeptVersion& version) {
    uint64_t hash = 14695981039346656037u;
    const auto mix = [&](int64_t value) { hash = (hash ^ static_cast<uint64_t>(value)) * 1099511628211u; };
    mix(version.number);
    mix(version.owners);
    for (const BlockKeepers& keepers : version.keepers)
        for (const int keeper : keepers) mix(keeper);
    return hash | 1;
}

/// The steps of a fetch: requests, lengths and data, agreement.
class Fetch {
  public:
    Fetch(KeepStore& its_store, const std::string& its_name, FetchedBlock& its_wanted)
        : store(its_store), call(store), name(its_name), wanted(its_wanted), room(wanted.address ? wanted.bytes : 0) {}

    int run() {
        try {
            exchange_requests();
            if (!call.failed()) error = check();
            if (!call.failed() && !error) transfer();
        } catch (const std::bad_alloc&) { call.abandon(); }
        const CallVerdict verdict = call.conclude();
        if (verdict.error) return report_failure(verdict.error);
        return error ? error : finish();
    }

  private:
    void exchange_requests() {
        requests.resize(store.size);
        version = store.find(name, wanted.version);
        const FetchRequest mine{hash_of(name, wanted.version), room, version ? layout_of(*version) : 0, wanted.owner, 0};
        call.gather(&mine, requests.data(), sizeof mine);
    }

    /// Checks the requests. All members return the same: what is not in the requests is the same on all if these are.
    int check() {
        for (const FetchRequest& request : requests)
            if (request.arguments != requests[0].arguments)
                return fail(MPI_ERR_ARG,
                            "the processes fetch different names or versions than block \"%s\"; all must fetch the same",
                            name.c_str());
        for (const FetchRequest& request : requests)
            if (request.found != requests[0].found)
                return fail(MPI_ERR_ARG,
                            "the processes have different versions of block \"%s\"; save a new version, or move the store",
                            name.c_str());
        if (!version) return report_no_version();
        for (const FetchRequest& request : requests)
            if (request.owner != MPI_PROC_NULL && (request.owner < 0 || request.owner >= version->owners))
                return fail(MPI_ERR_ARG,
                            "a process fetches the block of owner %d, but version %lld of \"%s\" has the owners 0 to %d",
                            request.owner, static_cast<long long>(version->number), name.c_str(), version->owners - 1);
        const bool is_lost = std::any_of(requests.begin(), requests.end(), [&](const FetchRequest& request) {
            return request.owner != MPI_PROC_NULL && version->keepers[request.owner][0] < 0;
        });
        return is_lost ? report_lost() : MPI_SUCCESS;
    }

    int report_no_version() const {
        const KeptVersion* latest = store.find(name, STARLING_KEEP_LATEST);
        if (!latest) return fail(MPI_ERR_ARG, "no version of block \"%s\" has been saved", name.c_str());
        return fail(MPI_ERR_ARG, "version %lld of block \"%s\" is not kept; the latest that counts is %lld",
                    static_cast<long long>(wanted.version), name.c_str(), static_cast<long long>(latest->number));
    }

    int report_lost() const {
        std::string ranks;
        for (int owner = 0; owner < version->owners; ++owner)
            if (version->keepers[owner][0] < 0) ranks += (ranks.empty() ? "" : ", ") + std::to_string(owner);
        return fail(STARLING_KEEP_LOST, "version %lld of block \"%s\" is lost of owner %s: no process that kept a copy is left",
                    static_cast<long long>(version->number), name.c_str(), ranks.c_str());
    }

    /// Returns the process that sends `owner`'s block to `to`: `to` itself if it has the block.
    int source_of(int owner, int to) const {
        const BlockKeepers& keepers = version->keepers[owner];
        return keepers[1] == to ? to : keepers[0];
    }

    void transfer() {
        std::vector<MPI_Request> pending = call.reserve(2 * requests.size()), own = call.reserve(1);
        std::vector<uint64_t> lengths(store.size);
        const int source = wanted.owner == MPI_PROC_NULL ? MPI_PROC_NULL : source_of(wanted.owner, store.rank);
        for (int to = 0; to < store.size; ++to)
            if (to != store.rank && requests[to].owner != MPI_PROC_NULL && source_of(requests[to].owner, to) == store.rank)
                send_block(to, lengths[to], pending);
        if (source == store.rank) {
            const BlockMemory& block = version->blocks.at(wanted.owner);
            length = block.size();
            if (length && length <= room) std::memcpy(wanted.address, block.data(), length);
        } else if (source != MPI_PROC_NULL) {
            receive_block(source, own);
        }
        call.wait(pending);
    }

    void send_block(int to, uint64_t& block_length, std::vector<MPI_Request>& pending) {
        const BlockMemory& block = version->blocks.at(requests[to].owner);
        block_length = block.size();
        call.send(&block_length, sizeof block_length, to, kLengthTag, pending);
        if (block_length && block_length <= requests[to].room) call.send(block.data(), block_length, to, kBlockTag, pending);
    }

    void receive_block(int from, std::vector<MPI_Request>& one) {
        call.receive(&length, sizeof length, from, kLengthTag, one);
        call.wait(one);
        if (call.failed() || !length || length > room) return;
        call.receive(wanted.address, length, from, kBlockTag, one);
        call.wait(one);
    }

    int finish() {
        wanted.version = version->number;
        if (wanted.owner == MPI_PROC_NULL) return MPI_SUCCESS;
        wanted.bytes = length;
        if (!wanted.address || length <= room) return MPI_SUCCESS;
        return fail(MPI_ERR_TRUNCATE, "version %lld of block \"%s\" of owner %d has %llu bytes, but the memory has only %llu",
                    static_cast<long long>(version->number), name.c_str(), wanted.owner,
                    static_cast<unsigned long long>(length), static_cast<unsigned long long>(room));
    }

    KeepStore& store;
    KeepCall call;
    const std::string& name;
    FetchedBlock& wanted;
    const uint64_t room;
    int error = MPI_SUCCESS;
    const KeptVersion* version = nullptr;
    uint64_t length = 0;
    std::vector<FetchRequest> requests;  ///< by rank
};

}  // namespace

int fetch_block(KeepStore& store, const std::string& name, FetchedBlock& wanted) { return Fetch(store, name, wanted).run(); }

}  // namespace starling::keep
