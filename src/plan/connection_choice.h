// Selects which of the wanted connections to request now. Pure, so that it can be tested.
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
    uint32_t limit = 0;    ///< number of unused connections
    uint32_t free = 0;     ///< number of connections that are closing, and so will be unused soon
    uint32_t leaving = 0;  ///< unused soon: their connections are closing
};

/// Returns the indexes in `wanted` (by falling priority) of the connections to request now. Considers the first `places.limit` that are not
/// barred. A missing connection takes a free place; without one it waits for a leaving connection, if any. Otherwise it is requested all
/// the same, and another connection will have to be closed for it.
std::vector<size_t> choose_requests(std::span<const ConnectionAvailability> wanted, ConnectionSlots places);

}  // namespace starling::plan
