// Finds the place in the program that called the library, for waits and collective calls.
#pragma once

namespace starling::profile {

/// Returns the return address of the call by which this thread entered the library; null if it cannot be found. Walks up the stack, which
/// takes some microseconds, so use it only for longer waits.
const void* call_site();

}  // namespace starling::profile
