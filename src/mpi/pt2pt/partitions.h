// Partitioned sends and receives: requests that are prepared once, and whose data is sent in parts as the partitions become ready.
//
// At MPI_Psend_init the sender sends an offer, a message with the program's tag in a separate match context. Senders and receivers thus
// match in the order of their preparation. The offer holds the number of partitions, their length and their tags. Each partition is then a
// separate message, whose tag identifies the partition; messages of consecutive starts arrive in order. The receiver posts one receive for
// each partition of the sender. When the program asks for one of its own partitions, the receiver checks those that overlap it.
#pragma once

#include <coroutine>
#include <memory>

#include "collective/collective_request.h"
#include "comm/comm.h"
#include "datatype/datatype.h"
#include "message/request.h"

namespace starling::mpi {

/// The arguments of a partitioned send or receive. The request holds a reference to the type.
struct Partitioned {
    void* buffer = nullptr;
    int partitions = 0;
    int64_t count = 0;  ///< number of elements in each partition
    const datatype::Datatype* type = nullptr;
    int rank = 0;
    int tag = 0;

    uint64_t part_bytes() const { return datatype::packed_size(*type, count); }
    uint64_t bytes() const { return part_bytes() * static_cast<uint64_t>(partitions); }
};

/// The message with which a sender announces the number, length and tags of its partitions.
struct PartitionedOffer {
    uint32_t first_tag = 0;  ///< tag of partition 0; the tags of the other partitions follow
    int32_t partitions = 0;
    uint64_t part_bytes = 0;
    int tag(int partition) const { return static_cast<int>((first_tag + static_cast<uint32_t>(partition)) & 0x7fffffff); }
};

/// A partitioned send. All calls need the library's lock.
struct PartitionedSend : collective::CollectiveRequest {
    ~PartitionedSend();
    /// Sends the offer to the receiver. Called once, when the request is made.
    void prepare(comm::Comm& comm, const Partitioned& what);
    /// Starts the send again; no partition is ready.
    void begin();
    /// Sends a partition. Returns an error class, with failure_text(), if that is not possible.
    int ready(int partition);
    void report_wait(progress::WaitReporter& teller) const;

  private:
    collective::Task send_all();
    /// Lets a coroutine await that all partitions have been sent.
    struct AllSent;

    Partitioned what_;
    PartitionedOffer offer_;
    message::MatchContext* channel_ = nullptr;
    std::unique_ptr<message::SendRequest[]> sends_;
    std::unique_ptr<bool[]> ready_;
    uint32_t open_ = 0;  ///< number of partitions that are not sent yet
    std::coroutine_handle<> waiting_;
};

/// A partitioned receive. All calls need the library's lock.
struct PartitionedReceive : collective::CollectiveRequest {
    ~PartitionedReceive();
    void prepare(comm::Comm& comm, const Partitioned& what);
    void begin();
    /// Returns whether all data of one of this side's partitions is in the buffer.
    bool arrived(int partition);
    int partitions() const { return what_.partitions; }
    /// Must be called before the request is freed. If no offer has arrived, creates a request that receives the offer later.
    void leave(comm::Comm& comm);
    void report_wait(progress::WaitReporter& teller) const;

  private:
    struct OfferReceive;
    collective::Task receive_all();
    int match();
    /// Unpacks the data of a sender's partition into the buffer, unless that has been done.
    void unpack(int part);

    Partitioned what_;
    OfferReceive* offer_ = nullptr;  ///< owned
    message::MatchContext* channel_ = nullptr;
    std::unique_ptr<message::ReceiveRequest[]> receives_;  ///< per partition of the sender: its receive; null before the offer
    std::unique_ptr<std::byte[]> room_;                    ///< staging memory for data that is not contiguous
    std::unique_ptr<bool[]> unpacked_;
    bool posted_ = false;  ///< whether the receives of the current start are posted
    uint32_t open_ = 0;
};

}  // namespace starling::mpi
