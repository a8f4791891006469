// Contents of packets of kind `access`.
#pragma once

#include <cstdint>

#include "transport/packet.h"
#include "transport/remote_memory.h"
#include "transport/transport.h"

namespace starling::rma {

/// The requests, then the answers. `done` answers a put or an update without result, `data` a request with a result; `some_data` carries a
/// part of a result and is followed by more.
enum class AccessOperation : uint8_t {
    put = 1,
    get,
    update,
    fetch_update,
    compare_swap,
    request_region,
    done,
    some_data,
    data,
    refused,
    region
};

/// A contiguous run of the region.
struct BlockRun {
    uint64_t offset;  ///< offset of the run in the region
    uint64_t bytes;   ///< number of data bytes; elements with gaps in or behind them take more memory
};

/// The beginning of a request's payload. It is followed by the runs, then by the data of a put or an update, in the order of the runs. For
/// compare_swap the data is the new value and the comparison value.
struct AccessPacket {
    uint64_t secret;   ///< secret of the region
    uint32_t region;   ///< number of the region
    uint32_t runs;     ///< number of runs (contiguous blocks of the region) that follow
    uint32_t bytes;    ///< total length of the data
    uint16_t element;  ///< ABI number of an update's predefined datatype
    uint16_t op;       ///< ABI number of an update's operation
    /// The packets and bytes that `done` acknowledges: those of this packet, and of earlier ones that asked for no answer. 0: this packet
    /// asks for no answer.
    uint32_t settled_packets = 0, settled_bytes = 0;
};
static_assert(sizeof(AccessPacket) == 32);

/// The counts that a `done` packet acknowledges, encoded in the header's offset.
struct DoneCounts {
    static constexpr uint32_t kBits = 48;
    uint64_t packets, bytes;
    static DoneCounts from(uint64_t word) { return {word >> kBits, word & ((uint64_t{1} << kBits) - 1)}; }
    uint64_t word() const { return packets << kBits | bytes; }
};

/// Payload of a `region` packet, which answers `request_region` (an AccessPacket without runs). It describes how the origin's device
/// accesses the memory by RDMA.
struct DeviceRegion {
    transport::RemoteKey region;
    uint64_t offset = 0;  ///< offset in the region at which the registered memory begins
    uint64_t bytes = 0;   ///< length of the registered memory
};

/// Limits of one packet: number of runs, bytes of data, and bytes that it may request. The answer to a request takes as many packets as it
/// needs.
inline constexpr uint32_t kMostRuns = 128;
inline constexpr uint32_t kMostCarried = 16 * 1024;
inline constexpr uint32_t kMostBytes = 32 * 1024;
/// Limit of the unanswered packets to one target, so that a slow owner is not flooded.
inline constexpr uint32_t kMostUnanswered = 64;

}  // namespace starling::rma
