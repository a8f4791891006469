#include "mpi/pt2pt/partitions.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/state.h"
#include "collective/core/buffers.h"
#include "message/point_to_point.h"
#include "message/status.h"
#include "message/wait_report.h"
#include "mpi/pt2pt/partition_tags.h"

namespace starling::mpi {

using collective::byte_type;
using collective::Task;
using message::ReceiveRequest;
using message::SendRequest;

namespace {

/// Tags of all partitioned sends of this process, whatever their destination.
STARLING_STATE Lazy<PartitionTags> tags;

/// Request that sends an offer (the message that announces a partitioned send); it frees itself when it completes.
struct OfferSend : SendRequest {
    PartitionedOffer offer;
};
constexpr progress::RequestClass kOfferSend{.dispose = [](progress::Request& r) { delete static_cast<OfferSend*>(&r); }};

/// Lets a coroutine await several receives, once only.
struct AllReceived {
    ReceiveRequest* receives;
    int count;
    uint32_t& open;
    bool await_ready() const {
        return std::all_of(receives, receives + count, [](const ReceiveRequest& r) { return r.done; });
    }
    void await_suspend(std::coroutine_handle<> handle) {
        open = 0;
        for (int i = 0; i < count; ++i) {
            if (receives[i].done) continue;
            ++open;
            receives[i].waiter = handle;
            receives[i].open_in_group = &open;
        }
    }
    void await_resume() const {}
};

}  // namespace

struct PartitionedSend::AllSent {
    PartitionedSend& send;
    bool await_ready() const { return send.what_.partitions == 0; }
    void await_suspend(std::coroutine_handle<> handle) { send.waiting_ = handle; }
    void await_resume() const {}
};

PartitionedSend::~PartitionedSend() {
    if (what_.type) datatype::release(*what_.type);
    if (channel_ && what_.partitions > 0) tags.get().release(offer_.first_tag);
}

void PartitionedSend::prepare(comm::Comm& comm, const Partitioned& what) {
    const auto n = static_cast<size_t>(what.partitions);
    sends_ = std::make_unique<SendRequest[]>(n);
    ready_ = std::make_unique<bool[]>(n);
    datatype::retain(*what.type);
    what_ = what;
    if (what.rank == MPI_PROC_NULL) return;
    offer_ = {tags.get().draw(static_cast<uint32_t>(what.partitions)), what.partitions, what.part_bytes()};
    channel_ = &comm.channel(comm::Plane::partitions);
    auto* const sent = new OfferSend;
    sent->offer = offer_;
    sent->operations = &kOfferSend;
    sent->orphaned = true;  // the request frees itself when the offer has been sent
    message::start_send(*sent, comm.channel(comm::Plane::partitioned), &sent->offer, sizeof sent->offer, byte_type(), what.rank,
                        what.tag, message::SendMode::standard);
}

void PartitionedSend::begin() {
    outcome = {};
    done = false;
    std::fill_n(ready_.get(), what_.partitions, false);
    open_ = static_cast<uint32_t>(what_.partitions);
    collective::start(send_all(), *this);
}

Task PartitionedSend::send_all() {
    if (!channel_) co_return MPI_SUCCESS;
    co_await AllSent{*this};
    for (int i = 0; i < what_.partitions; ++i)
        if (sends_[static_cast<size_t>(i)].outcome.error) co_return progress::error_of(sends_[static_cast<size_t>(i)]);
    co_return MPI_SUCCESS;
}

int PartitionedSend::ready(int partition) {
    if (partition < 0 || partition >= what_.partitions)
        return fail(MPI_ERR_ARG, "partition %d is not one of the %d partitions of this send", partition, what_.partitions);
    if (!active) return fail(MPI_ERR_REQUEST, "the partitioned send is not active; start it first (MPI_Start)");
    const auto i = static_cast<size_t>(partition);
    if (ready_[i])
        return fail(MPI_ERR_ARG,
                    "partition %d is already marked ready: mark each partition only once after each start of the send",
                    partition);
    ready_[i] = true;
    if (!channel_) return MPI_SUCCESS;
    SendRequest& send = sends_[i] = SendRequest();
    send.waiter = waiting_;
    send.open_in_group = &open_;
    const void* const data = collective::element(what_.buffer, partition * what_.count, *what_.type);
    message::start_send(send, *channel_, data, what_.count, *what_.type, what_.rank, offer_.tag(partition),
                        message::SendMode::standard);
    return MPI_SUCCESS;
}

void PartitionedSend::report_wait(progress::WaitReporter& teller) const {
    for (int i = 0; i < what_.partitions; ++i)
        if (const SendRequest& send = sends_[static_cast<size_t>(i)]; ready_[static_cast<size_t>(i)] && !send.done)
            message::report_send(send, teller);
}

struct PartitionedReceive::OfferReceive : ReceiveRequest {
    PartitionedOffer offer;
    /// Request that waits for the offer after the receive has been freed.
    collective::CollectiveRequest left;
    comm::Comm* comm = nullptr;  ///< holds a reference while `left` is active

    Task wait() {
        co_await progress::RequestDone{*this};
        co_return MPI_SUCCESS;
    }
};

PartitionedReceive::~PartitionedReceive() {
    if (what_.type) datatype::release(*what_.type);
    if (offer_ && offer_->done) delete offer_;
}

void PartitionedReceive::leave(comm::Comm& comm) {
    if (!offer_ || offer_->done) return;
    // The offer that was meant for this receive must not match the next one. So a request outlives this receive, takes in the offer and
    // deletes itself.
    static constexpr progress::RequestClass kLeft{.dispose = [](progress::Request& r) {
        auto* const offer = static_cast<OfferReceive*>(r.communicator);
        comm::Comm* const its = offer->comm;
        delete offer;
        its->release();
    }};
    OfferReceive* const offer = std::exchange(offer_, nullptr);
    offer->comm = comm.retain();
    offer->left.operations = &kLeft;
    offer->left.communicator = offer;
    offer->left.orphaned = true;
    collective::start(offer->wait(), offer->left);
}

void PartitionedReceive::prepare(comm::Comm& comm, const Partitioned& what) {
    datatype::retain(*what.type);
    what_ = what;
    if (what.rank == MPI_PROC_NULL) return;
    channel_ = &comm.channel(comm::Plane::partitions);
    offer_ = new OfferReceive;
    message::start_receive(*offer_, comm.channel(comm::Plane::partitioned), &offer_->offer, sizeof offer_->offer, byte_type(),
                           what.rank, what.tag);
}

void PartitionedReceive::begin() {
    outcome = {};
    done = posted_ = false;
    collective::start(receive_all(), *this);
}

/// Compares the sizes of the sender's and the receiver's data; allocates the receives at the first start.
int PartitionedReceive::match() {
    if (offer_->outcome.error) return progress::error_of(*offer_);
    const PartitionedOffer& offer = offer_->offer;
    const uint64_t coming = offer.part_bytes * static_cast<uint64_t>(offer.partitions);
    if (coming != what_.bytes())
        return fail(coming > what_.bytes() ? MPI_ERR_TRUNCATE : MPI_ERR_COUNT,
                    "the sender has %d partitions of %llu bytes, the receiver %d of %llu: their totals differ",
                    offer.partitions, static_cast<unsigned long long>(offer.part_bytes), what_.partitions,
                    static_cast<unsigned long long>(what_.part_bytes()));
    if (receives_) return MPI_SUCCESS;
    const auto n = static_cast<size_t>(offer.partitions);
    if (!datatype::is_block(*what_.type, what_.count * what_.partitions)) {
        room_ = std::make_unique_for_overwrite<std::byte[]>(coming + 1);
        unpacked_ = std::make_unique<bool[]>(n);
    }
    receives_ = std::make_unique<ReceiveRequest[]>(n);
    return MPI_SUCCESS;
}

Task PartitionedReceive::receive_all() {
    if (!offer_) {
        outcome = message::proc_null_outcome();
        co_return MPI_SUCCESS;
    }
    co_await progress::RequestDone{*offer_};
    int error = match();
    if (error) co_return error;
    const PartitionedOffer offer = offer_->offer;
    std::byte* const to = room_ ? room_.get() : static_cast<std::byte*>(datatype::block_address(*what_.type, what_.buffer));
    for (int i = 0; i < offer.partitions; ++i) {
        const auto at = static_cast<size_t>(i);
        receives_[at] = ReceiveRequest();
        if (unpacked_) unpacked_[at] = false;
        message::start_receive(receives_[at], *channel_, to + at * offer.part_bytes, static_cast<int64_t>(offer.part_bytes),
                               byte_type(), what_.rank, offer.tag(i));
    }
    posted_ = true;
    co_await AllReceived{receives_.get(), offer.partitions, open_};
    for (int i = 0; i < offer.partitions; ++i) {
        unpack(i);
        if (!error && receives_[static_cast<size_t>(i)].outcome.error)
            error = progress::error_of(receives_[static_cast<size_t>(i)]);
    }
    outcome.source = what_.rank;
    outcome.tag = what_.tag;
    outcome.bytes = what_.bytes();
    co_return error;
}

void PartitionedReceive::unpack(int part) {
    const auto i = static_cast<size_t>(part);
    if (!room_ || unpacked_[i]) return;
    unpacked_[i] = true;
    const uint64_t bytes = offer_->offer.part_bytes, from = bytes * i;
    datatype::unpack(*what_.type, what_.count * what_.partitions, what_.buffer, from, room_.get() + from, bytes);
}

bool PartitionedReceive::arrived(int partition) {
    if (done || !active) return true;
    if (!posted_) return false;
    // Check the sender's partitions from the one that contains this partition's begin to the one that contains its end.
    const int64_t theirs = offer_->offer.partitions, ours = what_.partitions;
    const auto first = static_cast<int>(partition * theirs / ours);
    const auto last = static_cast<int>(((partition + 1) * theirs + ours - 1) / ours);
    for (int i = first; i < last; ++i)
        if (!receives_[static_cast<size_t>(i)].done) return false;
    for (int i = first; i < last; ++i) unpack(i);
    return true;
}

void PartitionedReceive::report_wait(progress::WaitReporter& teller) const {
    if (!posted_) return offer_ ? message::report_receive(*offer_, teller) : void();
    for (int i = 0; i < offer_->offer.partitions; ++i)
        if (const ReceiveRequest& receive = receives_[static_cast<size_t>(i)]; !receive.done)
            message::report_receive(receive, teller);
}

}  // namespace starling::mpi
