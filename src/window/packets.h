// What packets of kind `segment` carry. In the header: flags = Operation, tag = serial and sequence = generation of the
// access, context = offset: into the segment on the way there, into the access's memory on the way back.
#pragma once

#include <cstdint>

namespace starling::window {

enum class Operation : uint8_t { put = 1, get, update, put_done, get_data, update_done, refused };

/// In front of the data of a put, and all of a get and an update.
struct AccessPacket {
    uint64_t key;
    uint32_t segment;
    uint32_t bytes;          ///< put, get: of data; update: 4 or 8
    uint64_t memory_offset;  ///< put, get: where in the access this is; comes back
    uint64_t operand, compare;
    uint32_t update;
    uint32_t reserved;
};
static_assert(sizeof(AccessPacket) == 48);

}  // namespace starling::window
