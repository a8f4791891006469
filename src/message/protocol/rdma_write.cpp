#include "message/protocol/rdma_write.h"

#include <memory>

#include "base/counters.h"
#include "base/error.h"
#include "datatype/datatype.h"
#include "message/protocol/incoming.h"
#include "message/protocol/rdma_read.h"
#include "transport/remote_memory.h"
#include "transport/transport.h"

namespace starling::message::rdma_write {

/// An RDMA target: a receive that its sender may write.
struct IncomingWrite : transport::RdmaTarget {
    ReceiveRequest* request = nullptr;
};

/// A send whose RDMA write is in progress.
struct Writing : transport::Completion {
    SendRequest* request = nullptr;  ///< the send; null: another protocol has sent the message, or it has arrived
};

namespace {

void settle(transport::RdmaTarget& arrival, bool written) {
    const std::unique_ptr<IncomingWrite> awaited(static_cast<IncomingWrite*>(&arrival));
    ReceiveRequest& request = *awaited->request;
    request.awaited = nullptr;
    if (!written) return incoming::repeat_cts(request);
    ++counters.writes_rdma;
    counters.bytes_written_rdma += request.expected;
    incoming::arrived(request, 0, request.expected);
}

bool start(const Matched& message, transport::WriteNotice told) {
    ReceiveRequest& request = message.request;
    auto awaited = std::make_unique<IncomingWrite>();
    awaited->then = settle;
    awaited->request = &request;
    CtsRdmaWrite asks{incoming::list(message), {}, static_cast<uint64_t>(told)};
    void* const into = datatype::block_address(*request.type, request.buffer);
    transport::Path& path = *request.peer->base;
    const bool may = path.by.notified_writes()->post(path, into, message.bytes, request.serial, *awaited, asks.target);
    if (may) request.awaited = awaited.release();
    link::send_control(*request.peer, packet::PacketKind::clear_to_stream, &asks, may ? sizeof asks : sizeof asks.clear);
    return true;
}

void settle(transport::Completion& completion) {
    const std::unique_ptr<Writing> writing(static_cast<Writing*>(&completion));
    if (writing->request) writing->request->writing = nullptr;
    if (writing->error) clear_failure();  // the error is not reported, because the receiver will send another CTS
}

}  // namespace

bool is_possible(const Matched& message) {
    if (!rdma_read::is_possible(message)) return false;
    const transport::Path& path = *message.peer().base;
    return path.by.notified_writes() && path.by.remote_memory()->can_register(path);
}

bool pays(const Matched&) { return false; }

bool start_chained(const Matched& message) { return start(message, transport::WriteNotice::separate_send); }
bool start_noted(const Matched& message) { return start(message, transport::WriteNotice::write_with_imm); }

void call_off(ReceiveRequest& request, bool at_once) {
    if (!request.awaited) return;
    request.peer->base->by.notified_writes()->cancel(*request.awaited, at_once);
    delete request.awaited;
    request.awaited = nullptr;
}

bool begin(SendRequest& request, const CtsRdmaWrite& asks) {
    if (asks.clear.bytes > request.bytes || !datatype::is_block(*request.type, request.count)) return false;
    auto writing = std::make_unique<Writing>();
    writing->then = settle;
    writing->request = &request;
    transport::Path& path = *request.peer->base;
    const auto told = asks.notice == static_cast<uint64_t>(transport::WriteNotice::write_with_imm)
                          ? transport::WriteNotice::write_with_imm
                          : transport::WriteNotice::separate_send;
    const void* const from = datatype::block_address(*request.type, request.buffer);
    transport::NotifiedWrites* const writes = path.by.notified_writes();
    if (!writes || writes->write(path, asks.target, from, asks.clear.bytes, asks.clear.receive_serial, told, *writing)) {
        clear_failure();
        return false;
    }
    request.writing = writing.release();
    return true;
}

void detach(SendRequest& request) {
    if (request.writing) request.writing->request = nullptr;
    request.writing = nullptr;
}

}  // namespace starling::message::rdma_write
