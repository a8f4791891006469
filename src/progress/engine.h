// The engine: moves messages and waits. One engine per process; every wait of the library goes through wait_until().
#pragma once

#include "message/request.h"

namespace starling::progress {

/// Polls every path once and runs what became ready. Returns whether anything happened. Needs the lock.
bool poll();

/// Blocks until `request` is done, in the job's waiting mode. Needs the lock (given up while idle in
/// multi-threaded programs).
void wait(message::Request& request);

/// Blocks until `condition(argument)` holds; it is asked after each poll, so it must be cheap.
void wait_until(bool (*condition)(void*), void* argument);

template <class F>
void wait_until(F&& condition) {
    wait_until([](void* f) { return static_cast<bool>((*static_cast<F*>(f))()); }, &condition);
}

}  // namespace starling::progress
