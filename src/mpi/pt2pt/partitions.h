// Partitioned messages: what is prepared once, and travels in parts as these become ready.
//
// A sender that is prepared says so in a message under the program's tag, on a plane of its own, so that senders and receivers
// match in the order in which they are prepared: how many partitions it has, how long they are, and under which tags they come.
// From then on each partition is a message of its own, whose tag says which one it is; those of one start follow those of the start
// before. The receiver posts a receive for each partition of the sender's, whatever its own are, and looks which of these lie in
// one of its own when the program asks.
#pragma once

#include <coroutine>
#include <memory>

#include "collective/collective_request.h"
#include "comm/comm.h"
#include "datatype/datatype.h"
#include "message/request.h"

namespace starling::mpi {

/// What both sides are given, and keep: a reference of the type.
struct Partitioned {
    void* buffer = nullptr;
    int partitions = 0;
    int64_t count = 0;  ///< elements in each
    const datatype::Datatype* type = nullptr;
    int rank = 0;
    int tag = 0;

    uint64_t part_bytes() const { return datatype::packed_size(*type, count); }
    uint64_t bytes() const { return part_bytes() * static_cast<uint64_t>(partitions); }
};

/// What a sender says when it is prepared.
struct PartitionedOffer {
    uint32_t first_tag = 0;  ///< of partition 0; the others follow
    int32_t partitions = 0;
    uint64_t part_bytes = 0;
    int tag(int partition) const { return static_cast<int>((first_tag + static_cast<uint32_t>(partition)) & 0x7fffffff); }
};

/// A partitioned send. All calls need the library's lock.
struct PartitionedSend : collective::CollectiveRequest {
    ~PartitionedSend();
    /// Once, when it is made: tells the receiver.
    void prepare(comm::Comm& comm, const Partitioned& what);
    /// Begins anew: no partition is ready.
    void begin();
    /// An error class, with failure_text(), if it can't be.
    int ready(int partition);
    void tell(progress::WaitReporter& teller) const;

  private:
    collective::Task send_all();
    /// Awaits that all partitions have been sent.
    struct AllSent;

    Partitioned what_;
    PartitionedOffer offer_;
    message::MatchContext* channel_ = nullptr;
    std::unique_ptr<message::SendRequest[]> sends_;
    std::unique_ptr<bool[]> ready_;
    uint32_t open_ = 0;  ///< partitions that are not sent yet
    std::coroutine_handle<> waiting_;
};

/// A partitioned receive. All calls need the library's lock.
struct PartitionedReceive : collective::CollectiveRequest {
    ~PartitionedReceive();
    void prepare(comm::Comm& comm, const Partitioned& what);
    void begin();
    /// Whether all data of one of this side's partitions is in the buffer.
    bool arrived(int partition);
    int partitions() const { return what_.partitions; }
    /// Before it goes: if no sender has been prepared for it, something stays that waits for that.
    void leave(comm::Comm& comm);
    void tell(progress::WaitReporter& teller) const;

  private:
    struct OfferReceive;
    collective::Task receive_all();
    int match();
    /// Puts what has come for a partition of the sender's into the buffer, if it isn't there.
    void unpack(int part);

    Partitioned what_;
    OfferReceive* offer_ = nullptr;  ///< owned
    message::MatchContext* channel_ = nullptr;
    std::unique_ptr<message::ReceiveRequest[]> receives_;  ///< by partition of the sender's; null: not known yet
    std::unique_ptr<std::byte[]> room_;                    ///< for what does not lie in one piece in the buffer
    std::unique_ptr<bool[]> unpacked_;
    bool posted_ = false;  ///< the receives of this start
    uint32_t open_ = 0;
};

}  // namespace starling::mpi
