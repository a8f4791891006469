// The reconfiguration manager. At each phase of the program it decides which peers get connections, opens the missing ones before they are
// used, and closes others only if their slots are needed. No message waits for it: without a connection, messages use the base path. Peers
// that the plan does not name get connections on demand.
//
// Each of the two ends of a connection has a limit. An end without an unused slot refuses, records the peer, and sends a request itself
// once a slot is unused. So the two ends need not begin a phase at the same time, nor have the same plan.
//
// Not thread-safe: requires the library's lock (base/lock.h).
#pragma once

namespace starling::plan {

/// Starts the manager, as STARLING_PLAN requests. Call it before the first peer is created.
void start();

}  // namespace starling::plan
