// Where in a reserved slot the data of an eager message or a fragment begins, and how it is best copied there.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/copy.h"
#include "datatype/datatype.h"
#include "transport/transport.h"

namespace starling::message {

/// Aligns the slot's payload with the data from byte `from` of the message on, if that is one block. Returns the kind of memory that the
/// payload lies in; `fixed`: the kind of payloads whose place is used again and again.
inline CopyPath::CopyDestination choose_payload(transport::PacketSlot& slot, const datatype::Datatype& type, int64_t count,
                                                const void* buffer, uint64_t from, CopyPath::CopyDestination fixed) {
    if (datatype::is_block(type, count)) slot.align_with(static_cast<std::byte*>(datatype::block_address(type, buffer)) + from);
    return slot.rotates ? CopyPath::CopyDestination::rotation : fixed;
}

}  // namespace starling::message
