// The interface of a transport that holds back packets or acknowledgements so that several travel together: Transport::batching().
#pragma once

#include "transport/transport.h"

namespace starling::transport {

class Batching {
  public:
    /// Between begin_batch() and end_batch() packets may be held back so that several are sent together. Batches nest.
    virtual void begin_batch() = 0;
    virtual void end_batch() = 0;
    /// Sends everything held back, as this process will not poll for long, or never again.
    virtual void flush() = 0;
    /// Asks the peers for acknowledgements that they hold back, as this process now waits for acknowledgements only.
    virtual void request_acks() = 0;

  protected:
    ~Batching() = default;
};

/// Guard for a batch: while it exists, its transport may hold packets back and send several together. It has no effect if the transport is
/// null or never holds packets back.
class Batch {
  public:
    explicit Batch(Transport* transport) : of_(transport ? transport->batching() : nullptr) {
        if (of_) of_->begin_batch();
    }
    Batch(const Batch&) = delete;
    ~Batch() {
        if (of_) of_->end_batch();
    }

  private:
    Batching* of_;
};

}  // namespace starling::transport
