// The time of this phase that was spent in waits, by what was waited for.
//
// Not thread-safe: within the library's lock (base/lock.h).
#pragma once

#include <cstddef>
#include <cstdint>

namespace starling::profile {

enum class Cause : uint8_t {
    late_sender,    ///< a receive or a probe waits
    late_receiver,  ///< a send does
    collective,     ///< a collective operation waits for others of its members
    other,
};
inline constexpr size_t kCauses = 4;

/// ns, where counting().
void add_wait(Cause cause, uint64_t ns);
/// ns by cause.
const uint64_t* waits();
void clear_waits();

}  // namespace starling::profile
