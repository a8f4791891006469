// Selects which of the wanted connections to request now. A pure function of its arguments, so that it can be tested.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace starling::plan {

/// The state of a wanted connection.
enum class ConnectionAvailability : uint8_t {
    missing,
    held,    ///< open, being opened, or being closed
    barred,  ///< not available now: the peer has refused it, or has ended
};

/// The connection quota of one transport.
struct ConnectionSlots {
    uint32_t limit = 0;    ///< maximum number of connections
    uint32_t free = 0;     ///< number of unused connection slots
    uint32_t leaving = 0;  ///< number of slots that will soon be unused, because their connections are closing
};

/// Returns the indexes in `wanted` (sorted by falling priority) of the connections to request now. Considers the first `places.limit`
/// entries that are not barred. A missing connection takes a free slot; without one, it is not requested yet if a slot is leaving.
/// Otherwise it is requested all the same, and another connection will have to be closed for it.
std::vector<size_t> choose_requests(std::span<const ConnectionAvailability> wanted, ConnectionSlots places);

}  // namespace starling::plan
