// One process's part in the agreements of a communicator that are decided in memory (memory_consensus.h): votes, waits, and wakes the others.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "collective/survivors/memory_consensus.h"
#include "comm/group.h"
#include "job/doorbell.h"
#include "progress/flag_wait.h"

namespace starling::collective {

class MemoryAgreements {
  public:
    /// Returns the part of member `me`; null if the members are not all processes of one job on this host, or there is no memory for the
    /// communicator's agreements. Another member may get memory then, or other memory: see close_others().
    static std::unique_ptr<MemoryAgreements> find(const comm::Group& members, int me, uint64_t context);

    /// Returns whether agreement `number` has been decided here. If not, and closed() is true, it never will be.
    bool decided(uint32_t number) const { return words_.decided(number); }
    bool closed() const { return words_.closed(); }
    /// Ends the agreements here, because a member has failed, and wakes the members that wait for one.
    void close();

    /// Closes this communicator's agreements in memory, and wakes all members, if a member uses other memory than `mine` (null: none). Called
    /// from time to time while this member waits.
    static void close_others(const comm::Group& members, int me, uint64_t context, MemoryAgreements* mine);
    /// Gives the memory of this communicator's agreements back, of which member `me` uses none any more.
    static void leave(const comm::Group& members, int me, uint64_t context);

    /// Awaits that this member may vote in an agreement: it has read the results of all before. Also returns when the words are closed.
    auto turn(uint32_t number) const {
        return progress::FlagAwaiter([this, number] { return number == next_ || closed(); });
    }
    /// Votes in agreement `number`.
    void vote(uint32_t number, int32_t flag);
    /// Awaits that an agreement is decided() or closed().
    auto outcome(uint32_t number) const {
        return progress::FlagAwaiter([this, number] { return decided(number) || closed(); });
    }
    struct Result {
        int32_t flag;
        uint64_t context;  ///< context id for a new communicator
    };
    /// Returns the result of agreement `number`, which is decided, once.
    Result read(uint32_t number) {
        next_ = number + 1;
        return {words_.flag(), words_.context()};
    }

    MemoryAgreements(link::AgreementWords& words, int members, std::vector<job::Doorbell*> others)
        : memory_(words), words_(words, members), others_(std::move(others)) {}
    MemoryAgreements(const MemoryAgreements&) = delete;

  private:
    void wake_others() const;

    const link::AgreementWords& memory_;
    MemoryConsensus words_;
    const std::vector<job::Doorbell*> others_;
    uint32_t next_ = 0;  ///< number of the agreement in which this member votes next
};

}  // namespace starling::collective
