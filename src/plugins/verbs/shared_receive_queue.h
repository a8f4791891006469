// The receive buffers of a port, posted to a shared receive queue, which its datagram queue and all its connections use.
#pragma once

#include <infiniband/verbs.h>

#include "plugins/verbs/buffers.h"

namespace starling::verbs {

class ReceiveStock {
  public:
    ~ReceiveStock() { drop(); }
    bool make(ibv_pd* domain, uint32_t count, uint32_t bytes, Problem& problem);
    void drop();

    ibv_srq* queue() const { return queue_; }
    std::byte* at(uint32_t index) const { return buffers_.at(index); }
    uint32_t bytes() const { return buffers_.bytes(); }
    uint64_t total() const { return buffers_.total(); }
    /// Frees a buffer. Buffers are posted in batches; call post() before leaving the port unpolled.
    void return_buffer(uint32_t index);
    void post();

  private:
    static constexpr uint32_t kTogether = 16;
    Buffers buffers_;
    ibv_srq* queue_ = nullptr;
    uint32_t back_[kTogether] = {};
    uint32_t back_count_ = 0;
};

}  // namespace starling::verbs
