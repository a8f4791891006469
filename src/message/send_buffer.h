// Buffers of buffered sends (MPI 5.0 section 3.6): a message is copied into the buffer and sent from there. All calls need the library's
// lock.
#pragma once

#include <cstddef>
#include <cstdint>

#include "datatype/datatype.h"
#include "message/channel.h"
#include "progress/request.h"

namespace starling::message {

/// An attached buffer. The space of completed sends is reclaimed when a send needs space and at each flush.
class BsendBuffer {
  public:
    /// The caller keeps ownership of `memory`. With MPI_BUFFER_AUTOMATIC each message has its own allocation instead.
    BsendBuffer(void* memory, int64_t size) : memory_(memory), size_(size) {}

    void* memory() const { return memory_; }
    int64_t size() const { return size_; }

    /// Copies a message into the buffer and starts its send. Returns MPI_ERR_BUFFER with failure_text() if there is no room.
    int send(MatchContext& channel, const void* data, int64_t count, const datatype::Datatype& type, int destination, int tag);
    /// Frees the space of messages that have been sent. Returns true if no message is left in the buffer.
    bool collect();
    /// Waits until all messages have been sent, and completes the flush requests that wait for this.
    void flush();
    /// Deletes this buffer, which must have been created by new. If threads wait in flush(), the last of them deletes it.
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

/// A request that completes when all messages in a buffer have been sent.
struct Flush : progress::Request {
    BsendBuffer* buffer = nullptr;
    Flush* next = nullptr;
};
void start_flush(Flush& flush, BsendBuffer& buffer);

}  // namespace starling::message
