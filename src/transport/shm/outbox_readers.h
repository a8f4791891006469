// This process's outbox (outbox.h), with its readers and the parts that each has not read yet.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "transport/shm/outbox.h"

namespace starling::shm {

/// Several processes that read numbered payloads in this outbox without receiving packets. Each counts in its own memory how far it has
/// read, so the owner of the outbox must read these counts.
class Borrowers {
  public:
    Borrowers() = default;
    Borrowers(const Borrowers&) = delete;
    virtual ~Borrowers() = default;
    /// Updates back() from the counts of these processes.
    virtual void update_back() = 0;
    /// Sets back(): all processes have read all payloads up to this number. It only grows.
    void set_back(uint64_t count) {
        if (count > back_.load(std::memory_order_relaxed)) back_.store(count, std::memory_order_relaxed);
    }
    uint64_t back() const { return back_.load(std::memory_order_relaxed); }

  private:
    friend class Lending;
    std::atomic<uint64_t> back_{0};
    bool known_ = false;
};

/// The owner's side of one outbox. Never destroyed: other processes may read the last payloads after this process has ended.
class Lending {
  public:
    /// Creates the owner's side. `memory`: kOutboxBytes of shared memory, page-aligned, that only this process writes.
    explicit Lending(std::byte* memory) : outbox_(memory) {}

    /// Returns where to write a payload of `bytes` (at most kOutboxPayload); null if there is no room now.
    std::byte* reserve(uint32_t bytes);
    /// Allocates to a reader the range that reserve() returned last. The range becomes free when the receipt's packet was read.
    OutboxPlace commit(const ReadReceipt& receipt, const void* reader, const std::byte* payload);
    /// Returns whether there is room for a payload of any length.
    bool has_room();
    /// Frees everything allocated to a reader that is dead.
    void forget(const void* reader) { outbox_.forget(reader); }

    /// Allocates `bytes` for a payload that all processes of `borrowers` will read. Returns where to write it, and sets `place`, by which
    /// they find it (payload_in() of outbox.h). The payload stays allocated until back() has reached `until`. Null if there is no room.
    /// While the readers keep up, payloads rotate among the first `window` bytes.
    std::byte* allocate(Borrowers& borrowers, uint32_t bytes, uint64_t until, uint32_t window, uint32_t& place);
    /// Takes ownership of `borrowers`, which get no further payloads. They are checked until all payloads are read, and then deleted.
    void end_loans(std::unique_ptr<Borrowers> borrowers);

    /// Called periodically while the process waits: returns the memory of an unused outbox to the system.
    void release_idle(uint64_t now);

  private:
    void update_borrowers();

    Outbox outbox_;
    uint64_t next_rest_ = 0;
    std::vector<Borrowers*> borrowers_;             ///< all groups of readers that were passed to allocate()
    std::vector<std::unique_ptr<Borrowers>> left_;  ///< groups of readers in borrowers_ that end_loans() received
};

}  // namespace starling::shm
