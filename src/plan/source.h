// The interface of a source of plans, which predicts the communication partners of a phase of the program.
//
// Not thread-safe: requires the library's lock (base/lock.h).
#pragma once

#include <cstdint>

#include "plan/peer_traffic.h"
#include "profile/phase.h"

namespace starling::plan {

class Source {
  public:
    virtual ~Source() = default;
    /// Returns the partners of an occurrence (1, 2, …) of a phase; null if unknown, so that connections are opened on demand. Valid until
    /// the next call of this source.
    virtual const Partners* partners(profile::PhaseId phase, uint64_t occurrence) = 0;
    /// Returns the partners of the phase that follows this occurrence. Used if the manager does not yet know which phase comes next.
    virtual const Partners* partners_after(profile::PhaseId, uint64_t) { return nullptr; }
    /// Notifies the source that a phase with these partners has ended and another begins.
    virtual void ended(profile::PhaseId, Partners, profile::PhaseId) {}
    /// Returns whether the source waits for an answer, such as the launcher's. The manager then calls poll() until it returns true, when
    /// more partners are known.
    virtual bool waits() const { return false; }
    virtual bool poll() { return false; }
};

}  // namespace starling::plan
