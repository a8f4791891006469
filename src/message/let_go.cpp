// MPI_Cancel of a send: it is let go.
#include <algorithm>
#include <atomic>
#include <memory>

#include "base/counters.h"
#include "datatype/datatype.h"
#include "link/peer.h"
#include "message/finish.h"
#include "message/point_to_point.h"
#include "message/protocol/rendezvous.h"
#include "message/send.h"

namespace starling::message {

namespace {

/// A send that nobody waits for, with a copy of its data.
struct LetGo : SendRequest {
    std::unique_ptr<std::byte[]> data;
};
constexpr RequestClass kLetGo{.dispose = [](Request& request) { delete static_cast<LetGo*>(&request); }};

LetGo* copy_of(const SendRequest& request) {
    auto copy = std::make_unique<LetGo>();
    static_cast<SendRequest&>(*copy) = request;
    copy->data = std::make_unique_for_overwrite<std::byte[]>(request.bytes + 1);
    datatype::pack(*request.type, request.count, request.buffer, 0, copy->data.get(), request.bytes);
    copy->buffer = copy->data.get();
    copy->count = static_cast<int64_t>(request.bytes);
    copy->type = &datatype::predefined(MPI_BYTE);
    copy->retained = false;
    copy->magic = 0;
    copy->waiter = {};
    copy->open_in_group = nullptr;
    copy->operations = &kLetGo;
    copy->communicator = nullptr;
    copy->persistent = false;
    copy->orphaned = true;
    return copy.release();
}

std::atomic<uint32_t>& shared_count() {
    const link::Process& me = link::self();
    return shm::Region(me.job->segment().region(me.rank)).presence().let_go;
}

}  // namespace

bool let_go(SendRequest& request) {
    if (request.done || request.was_asked_for()) return false;
    LetGo* copy = copy_of(request);
    std::replace(request.peer->sends.begin(), request.peer->sends.end(), &request, static_cast<SendRequest*>(copy));
    if (request.stage != SendRequest::Stage::eager) rendezvous::replace(request.serial, *copy);
    // Before the program may write to the buffer, and seen by who reads it after that.
    ++counters.let_go;
    shared_count().fetch_add(1, std::memory_order_seq_cst);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    finish(request, MPI_SUCCESS);
    return true;
}

uint32_t sends_let_go() { return shared_count().load(std::memory_order_relaxed); }

}  // namespace starling::message
