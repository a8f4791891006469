// Agreements in shared memory: the members of a communicator on one host agree without messages as long as no member has failed.
//
// Each member adds its flag to a word that all share, then counts itself. The last one writes the result and advances the number of decided
// agreements by a compare-and-swap. A member that knows of a failure closes the words instead, by a compare-and-swap of the same word. So
// each agreement is either decided here, by the votes of all members, or by no member here: then all members vote by messages
// (consensus.h), in this agreement and all later ones. The memory outlives the members, so this holds whichever of them die, and when.
//
// A member votes in an agreement only when it has read the result of the one before. So the result is not overwritten before all have read
// it, and one set of words suffices.
#pragma once

#include <atomic>
#include <cstdint>

#include "link/host_memory.h"

namespace starling::collective {

/// One member's view of its communicator's words. Each function is one step; other members may act or fail between any two. Cheap to copy.
class MemoryConsensus {
  public:
    MemoryConsensus(link::AgreementWords& words, int members) : words_(words), members_(static_cast<uint32_t>(members)) {}

    /// Returns whether agreement `number` has been decided here. It stays true.
    bool decided(uint32_t number) const { return static_cast<int32_t>(count(words_.state.load()) - number) > 0; }
    /// Returns whether no further agreement will be decided here. It stays true. decided() is final afterwards.
    bool closed() const { return words_.state.load() & kClosed; }

    // The steps of a vote in agreement `number`, in this order. The member has read the result of the one before.
    void add_flag(int32_t flag) { words_.cleared.fetch_or(~static_cast<uint32_t>(flag)); }
    /// Counts this member. Returns whether it is the last one, which takes the next steps; the others must not.
    bool arrive() { return words_.arrived.fetch_add(1) + 1 == members_; }
    /// Writes the result, with a context id for a new communicator.
    void store_result(uint64_t context) {
        words_.result_context.store(context, std::memory_order_relaxed);
        words_.result_cleared.store(words_.cleared.load());
    }
    /// Prepares the words for the next agreement. Nobody uses them before the decision.
    void clear_votes() {
        words_.cleared.store(0);
        words_.arrived.store(0);
    }
    /// Decides, unless a member has closed the words before. The caller wakes the others.
    bool decide(uint32_t number) {
        uint64_t open = uint64_t{number} << 1;
        return words_.state.compare_exchange_strong(open, uint64_t{number + 1} << 1);
    }

    /// Closes the words, because a member has failed. Returns whether this call did; then the caller wakes the others.
    bool close() { return !(words_.state.fetch_or(kClosed) & kClosed); }

    /// Return the result of the last decided agreement, until this member votes in the next one.
    int32_t flag() const { return static_cast<int32_t>(~words_.result_cleared.load()); }
    uint64_t context() const { return words_.result_context.load(std::memory_order_relaxed); }

  private:
    static constexpr uint64_t kClosed = 1;
    static uint32_t count(uint64_t state) { return static_cast<uint32_t>(state >> 1); }

    link::AgreementWords& words_;
    uint32_t members_;
};

}  // namespace starling::collective
