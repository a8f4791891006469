// Where plans come from: what says, of a phase of the program, with whom it will exchange messages.
//
// Not thread-safe: within the library's lock (base/lock.h).
#pragma once

#include <cstdint>

#include "plan/peer_traffic.h"
#include "profile/phase.h"

namespace starling::plan {

class Source {
  public:
    virtual ~Source() = default;
    /// The partners of this occurrence (1, 2, …) of a phase; null: nothing is known, so it goes as on demand. Valid until the
    /// next call to the source.
    virtual const Partners* partners(profile::PhaseId phase, uint64_t occurrence) = 0;
    /// Those of the phase that comes after, where the program has not shown yet which one that is.
    virtual const Partners* partners_after(profile::PhaseId, uint64_t) { return nullptr; }
    /// A phase is over, and had these partners; another begins.
    virtual void ended(profile::PhaseId, Partners, profile::PhaseId) {}
    /// Whether an answer is waited for; then poll() is to be called until it says that there is more to know than before.
    virtual bool waits() const { return false; }
    virtual bool poll() { return false; }
};

}  // namespace starling::plan
