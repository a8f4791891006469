// The reconfiguration manager: at each phase of the program it says which peers shall have connections, opens those that are missing
// before they are used, and lets others go only where their places are needed. No message waits for it: until a connection carries,
// and where there is none, messages take the base path. What the plan does not name goes on demand as ever.
//
// A connection has two ends, each with its limit. Who has no place refuses, and remembers whom; when it has one, it asks in its turn.
// So the two need not begin a phase at the same time, nor have the same plan.
//
// Not thread-safe: within the library's lock (base/lock.h).
#pragma once

namespace starling::plan {

/// Begins, as STARLING_PLAN says: before the first peer is met.
void start();

}  // namespace starling::plan
