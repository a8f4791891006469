// This process's outbox (outbox.h), and what of it which reader has.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "transport/shm/outbox.h"

namespace starling::shm {

/// Several processes that read what they find in this outbox without being sent it. They say in memory of their own how
/// far they are, so somebody has to look there.
class Borrowers {
  public:
    Borrowers() = default;
    Borrowers(const Borrowers&) = delete;
    virtual ~Borrowers() = default;
    /// Brings back() up to date.
    virtual void look() = 0;
    /// A count of loans that only grows: what was lent until there has been read by all.
    void set_back(uint64_t count) {
        if (count > back_.load(std::memory_order_relaxed)) back_.store(count, std::memory_order_relaxed);
    }
    uint64_t back() const { return back_.load(std::memory_order_relaxed); }

  private:
    friend class Lending;
    std::atomic<uint64_t> back_{0};
    bool known_ = false;
};

/// The owner's side of one outbox. Never destroyed: others may read what was lent last after this process has ended.
class Lending {
  public:
    /// As Outbox.
    explicit Lending(std::byte* memory) : outbox_(memory) {}

    /// Where to write a payload of `bytes` (at most kOutboxPayload); null if there is no room now.
    std::byte* reserve(uint32_t bytes);
    /// Gives a reader what was reserved last.
    OutboxPlace commit(const ReadReceipt& receipt, const void* reader);
    /// Whether there is room for a payload of any length.
    bool has_room();
    /// The reader will not read any more: it is dead.
    void forget(const void* reader) { outbox_.forget(reader); }

    /// Where to write `bytes` that these will read, and what they find it by (payload_in() of outbox.h); it is
    /// theirs at once, until back() has come to `until`. Null if there is no room.
    std::byte* lend(Borrowers& borrowers, uint32_t bytes, uint64_t until, uint32_t& place);
    /// Nothing will be lent to these any more. They are looked at until all is back, and then deleted.
    void end_loans(std::unique_ptr<Borrowers> borrowers);

    /// Now and then while the process waits: gives the memory of an outbox that is not used back to the system.
    void rest(uint64_t now);

  private:
    void look_at_borrowers();

    Outbox outbox_;
    uint64_t next_rest_ = 0;
    std::vector<Borrowers*> borrowers_;             ///< all who were lent something;
    std::vector<std::unique_ptr<Borrowers>> left_;  ///< of these, those who get nothing more
};

}  // namespace starling::shm
