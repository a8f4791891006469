// This process's outbox (transport/shm/outbox.h), and what of it which peer has.
#pragma once

#include <atomic>
#include <memory>

#include "link/peer.h"

namespace starling::link {

/// Once, when the own job is adopted.
void start_outbox();

/// Where to write a payload of `bytes` (at most shm::kOutboxPayload) for this peer; null if there is no room now.
std::byte* reserve_in_outbox(Peer& peer, uint32_t bytes);
/// Gives the peer what was reserved last.
shm::OutboxPlace commit_in_outbox(Peer& peer, const shm::ReadReceipt& receipt);

/// The peer will not read any more: it is dead.
void forget_in_outbox(Peer& peer);

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
    friend std::byte* lend_from_outbox(Borrowers&, uint32_t, uint64_t, uint32_t&);
    std::atomic<uint64_t> back_{0};
    bool known_ = false;
};

/// Where to write `bytes` that these will read, and what they find it by (payload_in() of transport/shm/outbox.h); it is
/// theirs at once, until back() has come to `until`. Null if there is no room.
std::byte* lend_from_outbox(Borrowers& borrowers, uint32_t bytes, uint64_t until, uint32_t& place);

/// Nothing will be lent to these any more. They are looked at until all is back, and then deleted.
void end_loans(std::unique_ptr<Borrowers> borrowers);

/// Now and then while the process waits: gives the memory of an outbox that is not used back to the system.
void rest_outbox(uint64_t now);

}  // namespace starling::link
