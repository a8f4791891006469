// What packets of kind `access` carry.
#pragma once

#include <cstdint>

#include "transport/packet.h"

namespace starling::rma {

/// What a packet asks for, and the answers. `done` answers a put and an update without result,
/// `data` what has one; `some_data` where more of it follows.
enum class Operation : uint8_t { put = 1, get, update, fetch_update, compare_swap, done, some_data, data, refused };

/// A stretch of the region that a packet is about.
struct Run {
    uint64_t offset;  ///< in the region
    uint64_t bytes;   ///< of data: of elements with gaps in them, or behind them, fewer than they take
};

/// First in the payload of what is asked for. Behind it the runs, then the data of a put or an update, in the order of the
/// runs; of compare_swap, the new value and the one to compare with.
struct AccessPacket {
    uint64_t secret;   ///< of the region
    uint32_t region;   ///< its number
    uint32_t runs;     ///< how many follow
    uint32_t bytes;    ///< of data, together
    uint16_t element;  ///< of an update: the predefined datatype, as the ABI numbers it
    uint16_t op;       ///< and the operation
};
static_assert(sizeof(AccessPacket) == 24);

/// Runs in one packet at most, and data to and fro: what any path takes.
inline constexpr uint32_t kMostRuns = 128;
inline constexpr uint32_t kMostBytes = 16 * 1024;
/// Packets to one target under way at most: an owner that is slow to answer is not flooded.
inline constexpr uint32_t kMostUnanswered = 64;

}  // namespace starling::rma
