// One process's part in the agreements of a communicator that are decided in memory (memory_consensus.h): votes, waits, and wakes the others.
#pragma once

#include <coroutine>
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
    /// communicator's agreements. All members get the same answer.
    static std::unique_ptr<MemoryAgreements> find(const comm::Group& members, int me, uint64_t context);

    /// Returns whether agreement `number` has been decided here. If not, and closed() is true, it never will be.
    bool decided(uint32_t number) const { return words_.decided(number); }
    bool closed() const { return words_.closed(); }
    /// Ends the agreements here, because a member has failed, and wakes the members that wait for one.
    void close();

    /// Awaits that this member may vote in an agreement: it has read the results of all before. Also returns when the words are closed.
    auto turn(uint32_t number) { return Wait<&MemoryAgreements::may_vote>(*this, number); }
    /// Votes in agreement `number`.
    void vote(uint32_t number, int32_t flag);
    /// Awaits that an agreement is decided() or closed().
    auto outcome(uint32_t number) { return Wait<&MemoryAgreements::is_over>(*this, number); }
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
        : words_(words, members), others_(std::move(others)) {}
    MemoryAgreements(const MemoryAgreements&) = delete;

  private:
    bool may_vote(uint32_t number) const { return number == next_ || closed(); }
    bool is_over(uint32_t number) const { return decided(number) || closed(); }

    template <bool (MemoryAgreements::*kReady)(uint32_t) const>
    class Wait {
      public:
        Wait(const MemoryAgreements& agreements, uint32_t number) : agreements_(agreements), number_(number) {}
        Wait(const Wait&) = delete;
        bool await_ready() const { return (agreements_.*kReady)(number_); }
        void await_suspend(std::coroutine_handle<> waiter) {
            flag_.waiter = waiter;
            progress::await_flags(flag_);
        }
        void await_resume() const {}

      private:
        const MemoryAgreements& agreements_;
        const uint32_t number_;
        progress::FlagWait flag_{{}, [](void* wait) { return static_cast<const Wait*>(wait)->await_ready(); }, this};
    };

    void wake_others() const;

    MemoryConsensus words_;
    const std::vector<job::Doorbell*> others_;
    uint32_t next_ = 0;  ///< number of the agreement in which this member votes next
};

}  // namespace starling::collective
