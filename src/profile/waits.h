// The time that the current phase has spent in waits, by cause and by place in the program.
//
// Not thread-safe: requires the library's lock (base/lock.h).
#pragma once

#include <cstddef>
#include <cstdint>

namespace starling::profile {

enum class Cause : uint8_t {
    late_sender,    ///< a receive or a probe waits for a message
    late_receiver,  ///< a send waits for its receiver
    collective,     ///< a collective operation waits for other members
    other,
};
inline constexpr size_t kCauses = 4;

/// The time that the calls of one function at one place in the program have waited.
struct WaitSum {
    const void* site;      ///< return address from call_site(); null: unknown
    const char* function;  ///< "MPI_Recv"; null: not known
    uint64_t ns[kCauses] = {};
};

/// Adds `ns` to the waits of a cause. Returns true if more than kPlaceNs of waits are not attributed to a place; the caller must then call
/// place_waits().
bool add_wait(Cause cause, uint64_t ns);
/// Attributes all waits since the last call of this function to one place in the program. Finding a place takes microseconds, and a process
/// that shares its core waits ten thousand times a second. So only a sample of the waits is located, in proportion to their time.
void place_waits(const void* site, const char* function);
inline constexpr uint64_t kPlaceNs = 300'000;
/// Returns the wait time of this phase by cause, ns.
const uint64_t* waits();
void each_wait(void (*visit)(const WaitSum& sum, void* argument), void* argument);
void clear_waits();

}  // namespace starling::profile
