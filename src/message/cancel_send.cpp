// Implements MPI_Cancel for sends. A synchronous send, or a send to this process itself, is cancelled. Any other send is abandoned: its
// request completes at once, and a copy of its data is sent instead.
#include <algorithm>
#include <atomic>
#include <memory>

#include "base/counters.h"
#include "datatype/datatype.h"
#include "link/host_memory.h"
#include "link/peer.h"
#include "message/completion.h"
#include "message/context_table.h"
#include "message/match.h"
#include "message/match_or_cancel.h"
#include "message/point_to_point.h"
#include "message/protocol/rdma_read.h"
#include "message/protocol/rendezvous.h"
#include "message/remote_cancel.h"
#include "message/send.h"
#include "progress/engine.h"

namespace starling::message {

namespace {

constexpr int kLooks = 1000;  // maximum number of polls that wait until a message to this process itself has arrived

/// The request that replaces an abandoned send and owns a copy of its data. No caller waits for it.
struct LetGo : SendRequest {
    std::unique_ptr<std::byte[]> data;
};
constexpr RequestClass kLetGo{.dispose = [](Request& request) { delete static_cast<LetGo*>(&request); }};

/// Returns a copy of the request with room for `bytes` of data.
std::unique_ptr<LetGo> stand_in(const SendRequest& request, uint64_t bytes) {
    auto copy = std::make_unique<LetGo>();
    static_cast<SendRequest&>(*copy) = request;
    copy->data = std::make_unique_for_overwrite<std::byte[]>(bytes + 1);
    copy->buffer = copy->data.get();
    copy->count = static_cast<int64_t>(bytes);
    copy->type = &datatype::predefined(MPI_BYTE);
    copy->retained = false;
    copy->of_all = false;
    copy->magic = 0;
    copy->waiter = {};
    copy->open_in_group = nullptr;
    copy->operations = &kLetGo;
    copy->communicator = nullptr;
    copy->persistent = false;
    copy->orphaned = true;
    return copy;
}

/// Replaces the request by its copy, in the peer's queue and under its request id. The request can then be completed.
void replace(SendRequest& request, SendRequest& by) {
    std::replace(request.peer->sends.begin(), request.peer->sends.end(), &request, &by);
    if (request.stage != SendRequest::Stage::eager) rendezvous::replace(request.serial, by);
}

std::atomic<uint32_t>& shared_count() {
    const link::Process& me = link::self();
    return link::SegmentRegion(me.job->segment().region(me.rank)).presence().abandoned_sends;
}

bool is_to_self(const SendRequest& request) {
    const link::Process& me = link::self();
    return &request.peer->job == me.job && request.peer->rank == me.rank;
}

/// Returns the unexpected message of a send to this process itself, if it was neither received nor probed; otherwise null.
Unexpected* find_unexpected_here(const SendRequest& request) {
    MatchContext* channel = directory.find(request.context);
    if (!channel || request.stage != SendRequest::Stage::offered || request.moved > 0) return nullptr;
    auto& kept = channel->queues().arrival;
    for (Unexpected* message = kept.front(); message; message = kept.next(message))
        if (message->rendezvous && message->peer == request.peer && message->offer.serial == request.serial) return message;
    return nullptr;
}

bool is_settled(const SendRequest& request) { return request.done || request.has_cts() || find_unexpected_here(request); }

bool withdraw_unsent(SendRequest& request) {
    if (!is_to_self(request)) return false;
    Unexpected* const message = find_unexpected_here(request);
    if (!message) return false;
    MatchQueues::remove(*message);
    unexpected_pool.destroy(message);
    request.outcome.cancelled = true;
    rendezvous::finish(request, MPI_SUCCESS);
    return true;
}

/// Cancels a send whose envelope was not sent. The envelope is still sent, but without a message, because later messages need its sequence
/// number.
bool withdraw_envelope(SendRequest& request) {
    std::unique_ptr<LetGo> copy = stand_in(request, 0);
    copy->withdrawn = true;
    replace(request, *copy.release());
    request.outcome.cancelled = true;
    finish(request, MPI_SUCCESS);
    return true;
}

/// Cancels a synchronous send to another process, from which no CTS has arrived. Returns true if the request is done.
bool cancel_synchronous(SendRequest& request) {
    if (request.stage == SendRequest::Stage::envelope && request.peer->supports(transport::kSharesMemory))
        return withdraw_envelope(request);
    if (!request.has_verdict) return request_cancel(request), false;
    if (!cancel_verdict(request)) return complete_with_copy(request), true;  // too late: the message was matched
    notify_receiver(request);
    request.outcome.cancelled = true;
    rendezvous::finish(request, MPI_SUCCESS);
    return true;
}

}  // namespace

void complete_with_copy(SendRequest& request, int error) {
    if (request.stage != SendRequest::Stage::eager) rdma_read::deregister(request, true);
    std::unique_ptr<LetGo> copy = stand_in(request, request.bytes);
    datatype::pack(*request.type, request.count, request.buffer, 0, copy->data.get(), request.bytes);
    replace(request, *copy.release());
    // Count the abandoned send before the program may write to the buffer. A receiver that reads the buffer after such a write then sees
    // the new count.
    ++counters.let_go;
    shared_count().fetch_add(1, std::memory_order_seq_cst);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    finish(request, error);
}

bool abandon(SendRequest& request) {
    if (request.done) return false;
    // Wait until a message to this process itself has arrived, so that it can be cancelled. If MPI_Mprobe has taken the message, it is
    // never found.
    for (int looks = 0; is_to_self(request) && !is_settled(request) && looks < kLooks; ++looks) progress::poll();
    if (request.done || request.has_cts()) return false;
    if (request.synchronous && !is_to_self(request)) return cancel_synchronous(request);
    if (!withdraw_unsent(request)) complete_with_copy(request);
    return true;
}

uint32_t abandoned_sends() { return shared_count().load(std::memory_order_relaxed); }

}  // namespace starling::message
