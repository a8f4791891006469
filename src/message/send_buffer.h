// Buffers of buffered sends (MPI 5.0 section 3.6): a message is copied into one and sent from there. All calls need the library's
// lock.
#pragma once

#include <cstddef>
#include <cstdint>

#include "datatype/datatype.h"
#include "message/channel.h"
#include "progress/request.h"

namespace starling::message {

/// Room is given back when sends turn out to be done, whenever somebody wants some or asks for a flush.
class SendBuffer {
  public:
    /// `memory` stays the caller's; MPI_BUFFER_AUTOMATIC: each message gets its own.
    SendBuffer(void* memory, int64_t size) : memory_(memory), size_(size) {}

    void* memory() const { return memory_; }
    int64_t size() const { return size_; }

    /// MPI_ERR_BUFFER with failure_text() if there is no room.
    int send(MatchContext& channel, const void* data, int64_t count, const datatype::Datatype& type, int destination, int tag);
    /// Gives back the room of messages that have gone; true if none is left.
    bool collect();
    /// Waits until all messages have gone, and completes the flushes that wait for that.
    void flush();
    /// The buffer goes, which was made by new: at once, or with the last thread that waits in flush().
    void end();

  private:
    struct Block;
    bool automatic() const;
    Block* allocate(size_t bytes);

    void* memory_;
    int64_t size_;
    Block* first_ = nullptr;
    int waiting_ = 0;
    bool ended_ = false;
};

/// Completes when all messages that were in a buffer have left it.
struct Flush : progress::Request {
    SendBuffer* buffer = nullptr;
    Flush* next = nullptr;
};
void start_flush(Flush& flush, SendBuffer& buffer);

}  // namespace starling::message
