#include "keep/save.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include "keep/message.h"
#include "keep/store_call.h"
#include "mpi-ext.h"

namespace starling::keep {

namespace {

enum : int { kHeaderTag = 1, kReadyTag = 2, kDataTag = 3 };

/// What a process tells its partner before it sends its block.
struct SaveHeader {
    uint64_t bytes = 0;
    uint64_t arguments = 0;  ///< hash of name and version
};

/// A process's bytes that do not fit its bound.
struct Shortage {
    uint64_t bytes = 0;
    uint64_t bound = 0;
};

/// The steps of a save: headers, a comparison of all arguments, memory, data, agreement.
class Save {
  public:
    Save(KeepStore& its_store, const std::string& its_name, const void* its_address, size_t its_bytes, int64_t its_version)
        : store(its_store),
          call(store),
          name(its_name),
          address(its_address),
          bytes(its_bytes),
          version(its_version),
          arguments(hash_of(name, version)),
          partner(store.partners[store.rank]) {}

    int run() {
        call.is_valid = address || !bytes;
        if (!call.is_valid) fail(MPI_ERR_ARG, "the address of a block with %zu bytes is NULL; give the block's memory", bytes);
        try {
            transfer();
        } catch (const std::bad_alloc&) { call.abandon(); }
        return result(call.conclude());
    }

  private:
    void transfer() {
        headers.resize(store.wards.size());
        ready.resize(store.wards.size());
        exchange_headers();
        measure();
        if (!all_may_go_on()) return;
        allocate();
        exchange_ready();
        if (!call.failed()) exchange_data();
    }

    void exchange_headers() {
        std::vector<MPI_Request> requests = call.reserve(headers.size() + 1);
        for (size_t i = 0; i < headers.size(); ++i)
            call.receive(&headers[i], sizeof headers[i], store.wards[i], kHeaderTag, requests);
        const SaveHeader header{bytes, arguments};
        if (partner >= 0) call.send(&header, sizeof header, partner, kHeaderTag, requests);
        call.wait(requests);
        for (size_t i = 0; i < headers.size() && !call.failed(); ++i) {
            if (headers[i].arguments == arguments) continue;
            call.is_valid = false;
            fail(MPI_ERR_ARG,
                 "rank %d saves another name or version than version %lld of block \"%s\" of rank %d; all processes must save "
                 "the same",
                 store.wards[i], static_cast<long long>(version), name.c_str(), store.rank);
        }
    }

    /// Computes how many bytes the save needs beyond the bound.
    void measure() {
        needed = store.used() - store.droppable(name, version) + bytes;
        for (const SaveHeader& header : headers) needed += header.bytes;
        shortage.bound = store.bound;
        if (needed > store.bound) shortage.bytes = needed - store.bound, call.has_memory = false;
    }

    /// Returns whether all members save the same version and have memory within their bounds. Older versions are dropped only then: neighbours
    /// alone would not see that members elsewhere save something else, and members would keep different versions.
    bool all_may_go_on() {
        const uint64_t yes = ~uint64_t{0};
        // A bit of the hash that differs between members is lost from the hash and from its complement.
        uint64_t words[] = {arguments, ~arguments, call.is_valid ? yes : 0, call.has_memory ? yes : 0};
        call.combine(words, 4, MPI_BAND);
        if (call.failed()) return false;
        if (call.is_valid && ((words[0] | words[1]) != yes || !words[2])) {
            call.is_valid = false;
            fail(MPI_ERR_ARG, "not all processes have given valid and equal arguments for version %lld of block \"%s\"",
                 static_cast<long long>(version), name.c_str());
        }
        return call.is_valid && words[3];
    }

    /// Allocates this process's copies, of its own block and of those of its wards.
    void allocate() {
        try {
            std::vector<BlockMemory> dropped = store.make_room(name, version);
            KeptVersion& kept = store.pending.save.emplace(name).version;
            kept.number = version, kept.owners = store.size, kept.own = store.rank;
            kept.keepers = store.current_keepers();
            kept.blocks[store.rank] = take(bytes, dropped);
            for (size_t i = 0; i < headers.size(); ++i) kept.blocks[store.wards[i]] = take(headers[i].bytes, dropped);
        } catch (const std::bad_alloc&) {
            // The machine's memory ends before the bound.
            call.has_memory = false;
            shortage.bytes = needed - std::min<uint64_t>(needed, store.used());
        }
    }

    /// Returns memory of a dropped block with the same length, whose pages are present already, or else new memory.
    static BlockMemory take(size_t length, std::vector<BlockMemory>& dropped) {
        for (BlockMemory& block : dropped)
            if (length && block.size() == length) return std::exchange(block, BlockMemory());
        return BlockMemory(length);
    }

    /// Tells each ward whether this process has memory for its block.
    void exchange_ready() {
        std::vector<MPI_Request> requests = call.reserve(ready.size() + 1);
        if (partner >= 0) call.receive(&partner_ready, 1, partner, kReadyTag, requests);
        for (size_t i = 0; i < ready.size(); ++i) {
            ready[i] = call.has_memory;
            call.send(&ready[i], 1, store.wards[i], kReadyTag, requests);
        }
        call.wait(requests);
    }

    void exchange_data() {
        std::vector<MPI_Request> requests = call.reserve(headers.size() + 1);
        for (size_t i = 0; i < headers.size() && call.has_memory; ++i) {
            BlockMemory& block = store.pending.save->version.blocks[store.wards[i]];
            if (block.size()) call.receive(block.data(), block.size(), store.wards[i], kDataTag, requests);
        }
        if (partner_ready && bytes) call.send(address, bytes, partner, kDataTag, requests);
        if (call.has_memory && bytes) std::memcpy(store.pending.save->version.blocks[store.rank].data(), address, bytes);
        call.wait(requests);
    }

    int result(const CallVerdict& verdict) {
        if (verdict.error) return report_failure(verdict.error);
        if (!verdict.is_valid) return MPI_ERR_ARG;
        return verdict.has_memory ? MPI_SUCCESS : report_shortage();
    }

    /// Finds the lowest rank that lacks memory, and how much. Other members wait for this one, so it ends their waits if it fails.
    int report_shortage() {
        const auto size = static_cast<uint64_t>(store.size);
        uint64_t rank = shortage.bytes ? static_cast<uint64_t>(store.rank) : size;
        uint64_t lack[] = {0, 0};
        KeepCall search(store);
        try {
            search.combine(&rank, 1, MPI_MIN);
            if (rank == static_cast<uint64_t>(store.rank)) lack[0] = shortage.bytes, lack[1] = shortage.bound;
            search.combine(lack, 2, MPI_MAX);
        } catch (const std::bad_alloc&) { search.abandon(); }
        if (search.failed() || rank == size)
            return fail(MPI_ERR_NO_MEM, "a process has too little memory for version %lld of block \"%s\"",
                        static_cast<long long>(version), name.c_str());
        return fail(MPI_ERR_NO_MEM,
                    "version %lld of block \"%s\" needs %llu bytes more than rank %llu has within its bound of %llu; give the "
                    "store a larger bound",
                    static_cast<long long>(version), name.c_str(), static_cast<unsigned long long>(lack[0]),
                    static_cast<unsigned long long>(rank), static_cast<unsigned long long>(lack[1]));
    }

    KeepStore& store;
    KeepCall call;
    const std::string& name;
    const void* const address;
    const size_t bytes;
    const int64_t version;
    const uint64_t arguments;
    const int partner;                ///< -1: none
    std::vector<SaveHeader> headers;  ///< by ward
    std::vector<char> ready;          ///< by ward: whether it may send its block
    char partner_ready = 0;
    uint64_t needed = 0;  ///< bytes of the store after the save
    Shortage shortage;
};

}  // namespace

int save_block(KeepStore& store, const std::string& name, const void* address, size_t bytes, int64_t version) {
    return Save(store, name, address, bytes, version).run();
}

}  // namespace starling::keep
