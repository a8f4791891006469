// The reconfiguration manager. At each phase of the program it decides which peers get connections, opens the missing ones before they are
// used, and closes others only if their places are needed. No message waits for it: without a connection, messages use the base path. Peers
// that the plan does not name get connections on demand.
//
// A connection has two ends, each with a limit. An end without a free place refuses, records the peer, and sends a request itself once it
// has one. So the two ends need not begin a phase at the same time, nor have the same plan.
//
// Not thread-safe: within the library's lock (base/lock.h).
#pragma once

namespace starling::plan {

/// Starts the manager, as STARLING_PLAN requests. Call it before the first peer is created.
void start();

}  // namespace starling::plan
