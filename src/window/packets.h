// What packets of kind `access` carry.
#pragma once

#include <cstdint>

#include "transport/packet.h"

namespace starling::window {

enum class Operation : uint8_t { put = 1, get, update, put_done, get_data, update_done, refused };

/// In front of the data of a put, and all of a get and an update.
struct AccessPacket {
    uint64_t key;
    uint32_t exposure;       ///< its id
    uint32_t bytes;          ///< put, get: of data; update: 4 or 8
    uint64_t memory_offset;  ///< put, get: where in the access this is; comes back
    uint64_t operand, compare;
    uint32_t update;
    uint32_t reserved;
};
static_assert(sizeof(AccessPacket) == 48);

inline void write_header(packet::Header& header, Operation operation, const packet::Access& access) {
    header.kind = packet::Kind::access;
    header.operation = static_cast<uint8_t>(operation);
    header.access = access;
}

}  // namespace starling::window
