// A chain of work requests of one connection. They are not posted yet, because more follow; all are posted together, with one doorbell.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>

namespace starling::verbs {

class RcQueue;

inline constexpr uint32_t kInline = 192;  ///< bytes of inline data requested per work request; a device may support less

struct Chain {
    static constexpr uint32_t kTogether = 8;

    RcQueue* owner = nullptr;
    uint32_t count = 0;
    uint32_t first = 0;  ///< position of the first request in the owner's queue
    ibv_send_wr work[kTogether];
    ibv_sge places[kTogether];
    alignas(8) std::byte small[kTogether][kInline];  ///< copies of inline data, so that the caller can reuse its memory at once
};

}  // namespace starling::verbs
