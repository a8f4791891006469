// Where plans come from: what says, of a phase of the program, with whom it will exchange messages.
//
// Not thread-safe: within the library's lock (base/lock.h).
#pragma once

#include <cstdint>

#include "plan/partner.h"
#include "profile/phase.h"

namespace starling::plan {

class Source {
  public:
    virtual ~Source() = default;
    /// The partners of this occurrence (1, 2, …) of a phase; null: nothing is known, so it goes as on demand. Valid until the
    /// next call to the source.
    virtual const Partners* partners(profile::PhaseId phase, uint64_t occurrence) = 0;
    /// Which phase comes after this one, where the program has not shown it yet: its id, or the same one if that is not known.
    virtual profile::PhaseId expected_after(profile::PhaseId phase) { return phase; }
    /// A phase is over, and had these partners.
    virtual void ended(profile::PhaseId phase, Partners partners) = 0;
};

}  // namespace starling::plan
