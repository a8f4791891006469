// Work of one connection that the device has not been told of yet, since more follows: told together, with one ring of its bell.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>

namespace starling::verbs {

class Connection;

inline constexpr uint32_t kInline = 192;  ///< bytes of a message that a place holds: asked for; a device may give less

struct Chain {
    static constexpr uint32_t kTogether = 8;

    Connection* owner = nullptr;
    uint32_t count = 0;
    uint32_t first = 0;  ///< position of the first in the owner's queue
    ibv_send_wr work[kTogether];
    ibv_sge places[kTogether];
    alignas(8) std::byte small[kTogether][kInline];  ///< what goes inline: the caller's memory is free at once
};

}  // namespace starling::verbs
