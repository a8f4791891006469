#include "keep/save.h"

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

/// The steps of a save: headers, memory, data, agreement.
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
        return result(call.conclude(arguments));
    }

  private:
    void transfer() {
        headers.resize(store.wards.size());
        ready.resize(store.wards.size());
        exchange_headers();
        if (call.failed()) return;
        allocate();
        exchange_ready();
        if (!call.failed()) exchange_data();
    }

    void exchange_headers() {
        std::vector<MPI_Request> requests = call.reserve(headers.size() + 1);
        for (size_t i = 0; i < headers.size(); ++i)
            call.receive(&headers[i], sizeof headers[i], store.wards[i], kHeaderTag, requests);
        announced = call.is_valid ? bytes : 0;
        const SaveHeader header{announced, arguments};
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

    /// Allocates this process's copies, of its own block and of those of its wards.
    void allocate() {
        std::vector<BlockMemory> dropped = store.make_room(name, version);
        uint64_t needed = store.used() + (call.is_valid ? bytes : 0);
        for (const SaveHeader& header : headers) needed += header.bytes;
        shortage.bound = store.bound;
        if (needed > store.bound) shortage.bytes = needed - store.bound, call.has_memory = false;
        if (!call.has_memory || !call.is_valid) return;
        store.pending.save.emplace();
        store.pending.save->name = name;
        KeptVersion& kept = store.pending.save->version;
        kept.number = version, kept.owners = store.size, kept.own = store.rank;
        kept.keepers = store.current_keepers();
        try {
            kept.blocks[store.rank] = take(bytes, dropped);
            for (size_t i = 0; i < headers.size(); ++i) kept.blocks[store.wards[i]] = take(headers[i].bytes, dropped);
        } catch (const std::bad_alloc&) {
            // The machine's memory ends before the bound.
            call.has_memory = false;
            shortage.bytes = needed - store.used();
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
            ready[i] = call.has_memory && call.is_valid;
            call.send(&ready[i], 1, store.wards[i], kReadyTag, requests);
        }
        call.wait(requests);
    }

    void exchange_data() {
        std::vector<MPI_Request> requests = call.reserve(headers.size() + 1);
        const bool is_ready = call.has_memory && call.is_valid;
        for (size_t i = 0; i < headers.size() && is_ready; ++i) {
            BlockMemory& block = store.pending.save->version.blocks[store.wards[i]];
            if (block.size()) call.receive(block.data(), block.size(), store.wards[i], kDataTag, requests);
        }
        // A partner that is ready waits for what was announced, even if this process has found a mismatch since.
        if (partner_ready && announced) call.send(address, announced, partner, kDataTag, requests);
        if (is_ready && bytes) std::memcpy(store.pending.save->version.blocks[store.rank].data(), address, bytes);
        call.wait(requests);
    }

    int result(const CallVerdict& verdict) {
        if (verdict.error) return report_failure(verdict.error);
        if (!verdict.has_memory) return report_shortage();
        if (!verdict.is_valid && call.is_valid)
            return fail(MPI_ERR_ARG, "not all processes have given valid and equal arguments for version %lld of block \"%s\"",
                        static_cast<long long>(version), name.c_str());
        return verdict.is_valid ? MPI_SUCCESS : MPI_ERR_ARG;
    }

    int report_shortage() {
        std::vector<Shortage> all(store.size);
        {
            KeepCall gathering(store);
            gathering.gather(&shortage, all.data(), sizeof shortage);
            if (gathering.failed()) all.clear();
        }
        for (size_t rank = 0; rank < all.size(); ++rank) {
            if (!all[rank].bytes) continue;
            return fail(MPI_ERR_NO_MEM,
                        "version %lld of block \"%s\" needs %llu bytes more than rank %zu has within its bound of %llu; give "
                        "the store a larger bound",
                        static_cast<long long>(version), name.c_str(), static_cast<unsigned long long>(all[rank].bytes), rank,
                        static_cast<unsigned long long>(all[rank].bound));
        }
        return fail(MPI_ERR_NO_MEM, "a process has too little memory for version %lld of block \"%s\"",
                    static_cast<long long>(version), name.c_str());
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
    size_t announced = 0;             ///< bytes that the partner expects
    char partner_ready = 0;
    Shortage shortage;
};

}  // namespace

int save_block(KeepStore& store, const std::string& name, const void* address, size_t bytes, int64_t version) {
    return Save(store, name, address, bytes, version).run();
}

}  // namespace starling::keep
