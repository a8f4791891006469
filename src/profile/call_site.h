// Where in the program the library was called, for those who ask when there is time.
#pragma once

namespace starling::profile {

/// The place behind the call by which this thread has entered the library, as a return address; null if it can't be found. Walks up
/// the stack, which takes some microseconds: for waits that last longer.
const void* call_site();

}  // namespace starling::profile
