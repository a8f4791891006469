// Prices what a rank does without a simulated call, by the counters of its library (base/counters.def): messages through shared memory,
// and the number of rings that a poll visits.
#pragma once

#include "base/counters.h"
#include "prices.h"
#include "world.h"

namespace starling::simulation {

class CounterMeter final : public Meter {
  public:
    /// The counters lie in the job segment, which outlives the meter.
    explicit CounterMeter(const Counters& of_rank) : of_rank_(of_rank) {}

    // The sender pays for both ends: nothing shows when the receiver takes the message.
    uint64_t due() override {
        const uint64_t messages = of_rank_.messages_ring + of_rank_.messages_inbox;
        if (messages == messages_) return 0;
        const uint64_t bytes = of_rank_.bytes_ring + of_rank_.bytes_inbox;
        const Prices& all = prices();
        const uint64_t price =
            all.with_bytes((messages - messages_) * all.of.shared_memory_line, all.of.shared_memory_byte, bytes - bytes_);
        messages_ = messages;
        bytes_ = bytes;
        return price;
    }

    uint64_t rings_price() override { return of_rank_.verbs_rings * prices().of.ring_poll; }

  private:
    const Counters& of_rank_;
    uint64_t messages_ = 0, bytes_ = 0;
};

}  // namespace starling::simulation
