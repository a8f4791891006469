// What packets of kind `access` carry.
#pragma once

#include <cstdint>

#include "transport/packet.h"
#include "transport/transport.h"

namespace starling::rma {

/// What a packet asks for, and the answers. `done` answers a put and an update without result,
/// `data` what has one; `some_data` where more of it follows.
enum class Operation : uint8_t {
    put = 1,
    get,
    update,
    fetch_update,
    compare_swap,
    ask_region,
    done,
    some_data,
    data,
    refused,
    region
};

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
    /// What `done` answers: this packet, and those before it that ask for no answer and so say 0 here.
    uint32_t settled_packets = 0, settled_bytes = 0;
};
static_assert(sizeof(AccessPacket) == 32);

/// What `done` says, in the header's offset.
struct Settled {
    static constexpr uint32_t kBits = 48;
    uint64_t packets, bytes;
    static Settled from(uint64_t word) { return {word >> kBits, word & ((uint64_t{1} << kBits) - 1)}; }
    uint64_t word() const { return packets << kBits | bytes; }
};

/// Payload of `region`, the answer to `ask_region` (an AccessPacket without runs): how the asker's device reaches the memory itself.
struct DeviceRegion {
    transport::Region region;
    uint64_t offset = 0;  ///< in the region where that begins,
    uint64_t bytes = 0;   ///< and how long it is
};

/// Runs in one packet at most, and data in one; and what one may ask for, whose answer is as many packets as that takes.
inline constexpr uint32_t kMostRuns = 128;
inline constexpr uint32_t kMostCarried = 16 * 1024;
inline constexpr uint32_t kMostBytes = 32 * 1024;
/// Packets to one target under way at most: an owner that is slow to answer is not flooded.
inline constexpr uint32_t kMostUnanswered = 64;

}  // namespace starling::rma
