#include "message/protocol/rdma_read.h"

#include "base/counters.h"
#include "base/list.h"
#include "base/state.h"
#include "datatype/datatype.h"
#include "message/completion.h"
#include "message/protocol/stream.h"
#include "transport/remote_memory.h"
#include "transport/transport.h"

namespace starling::message::rdma_read {

namespace {

/// Minimum message size for RDMA read, bytes. Sending a shorter message as frames takes less time than registering its memory.
constexpr uint64_t kLeast = 8 * 1024;

/// A receive whose data this process's device is reading.
struct Reading : transport::Completion {
    ReceiveRequest* request = nullptr;
    Rts offer;
    uint64_t bytes = 0;
    bool gone = false;  ///< whether the sender has failed; its peer object may then be invalid
    ListHook hook;
};
using Readings = List<Reading, &Reading::hook>;
STARLING_STATE Readings* readings = nullptr;

void settle(transport::Completion& completion) {
    auto* const reading = static_cast<Reading*>(&completion);
    const Reading done = *reading;
    Readings::remove(reading);
    delete reading;
    ReceiveRequest& request = *done.request;
    if (done.gone) {
        return finish(request, starling::fail(MPI_ERR_PROC_ABORTED, "rank %d ended before its message of %llu bytes was read",
                                              request.outcome.source, static_cast<unsigned long long>(done.offer.bytes)));
    }
    if (done.error) {
        clear_failure();
        stream::start({request, done.offer, done.bytes, false});
        return;
    }
    ++counters.reads_rdma;
    counters.bytes_read_rdma += done.bytes;
    const Fin fetched{done.offer.serial};
    link::send_control(*request.peer, packet::PacketKind::fetched, &fetched, sizeof fetched);
    request.outcome.bytes = done.bytes;
    finish(request, request.outcome.error);
}

}  // namespace

bool is_possible(const Matched& message) {
    if (!message.offer.registered || message.peer().supports(transport::kSharesMemory) ||
        !datatype::is_block(*message.request.type, message.request.count))
        return false;
    const transport::Path& path = *message.peer().base;
    const transport::RemoteMemory* const memory = path.by.remote_memory();
    return memory && memory->can_access(path, message.offer.region());
}

bool pays(const Matched&) { return true; }

bool start(const Matched& message) {
    if (!readings) readings = new Readings;
    auto* const reading = new Reading;
    reading->then = settle;
    reading->request = &message.request;
    reading->offer = message.offer;
    reading->bytes = message.bytes;
    readings->push_back(reading);
    transport::Path& path = *message.peer().base;
    void* const into = datatype::block_address(*message.request.type, message.request.buffer);
    if (path.by.remote_memory()->get(path, message.offer.region(), 0, into, message.bytes, *reading) == MPI_SUCCESS)
        return true;
    clear_failure();
    Readings::remove(reading);
    delete reading;
    return false;
}

// Marks the reads from failed processes. Their connection is closed, or is about to be, and this ends the RDMA reads.
void fail(const Gone& gone) {
    for (Reading* one = readings ? readings->front() : nullptr; one; one = readings->next(one))
        if (!one->gone) one->gone = gone.includes(*one->request->peer);
}

void register_for_read(SendRequest& request, Rts& offer) {
    offer.pid = 0;
    offer.abandoned_sends = 0;
    if (request.bytes < kLeast || !datatype::is_block(*request.type, request.count)) return;
    transport::Path& path = *request.peer->base;
    transport::RemoteMemory* const memory = path.by.remote_memory();
    if (!memory) return;
    transport::RemoteKey region;
    const void* const data = datatype::block_address(*request.type, request.buffer);
    request.loan = memory->register_memory(path, data, request.bytes, false, region);
    if (request.loan) offer.set_region(region);
}

void deregister(SendRequest& request, bool at_once) {
    if (!request.loan) return;
    request.peer->base->by.remote_memory()->deregister(request.loan, at_once);
    request.loan = nullptr;
}

}  // namespace starling::message::rdma_read
