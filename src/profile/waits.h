// The time of this phase that was spent in waits, by what was waited for and where in the program.
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

/// Of the program's calls of one function at one place.
struct WaitSum {
    const void* site;      ///< return address, as call_site() gives it; null: not known
    const char* function;  ///< "MPI_Recv"; null: not known
    uint64_t ns[kCauses] = {};
};

/// Adds `ns` of a wait. True now and then (kPlaceNs): the caller shall say by place_waits() where that is.
bool add_wait(Cause cause, uint64_t ns);
/// Puts down to a place of the program what has been waited since the last time. Finding one takes microseconds, and a process that
/// shares its core waits ten thousand times a second, so each place is found for some of its waits, in proportion to their time.
void place_waits(const void* site, const char* function);
inline constexpr uint64_t kPlaceNs = 300'000;
/// ns by cause.
const uint64_t* waits();
void each_wait(void (*visit)(const WaitSum& sum, void* argument), void* argument);
void clear_waits();

}  // namespace starling::profile
