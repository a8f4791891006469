#include "message/remote_cancel.h"

#include <cstring>

#include "link/peer.h"
#include "message/protocol/rendezvous.h"
#include "message/receive.h"

namespace starling::message {

namespace {

enum class CancelStep : uint32_t { ask, withdrawn, already_matched, not_arrived, drop };

/// Payload of a `cancel` packet. The sequence number distinguishes the message from earlier ones with the same request id.
struct Cancel {
    uint64_t context;
    uint32_t sequence;
    uint32_t serial;  ///< request id of the send
    CancelStep what;
    uint32_t unused = 0;
};
static_assert(sizeof(Cancel) == 24 && sizeof(Cancel) <= link::PendingControl::kMost);

void send_cancel(link::Peer& peer, const Cancel& cancel) {
    link::send_control(peer, packet::PacketKind::cancel, &cancel, sizeof cancel);
}

CancelStep answer_to(const link::Peer& peer, const Cancel& asked) {
    switch (withdraw(peer, asked.context, asked.sequence)) {
        case Withdrawn::yes:
            return CancelStep::withdrawn;
        case Withdrawn::not_arrived:
            return CancelStep::not_arrived;
        case Withdrawn::already_matched:
            break;
    }
    return CancelStep::already_matched;
}

void on_answer(link::Peer& peer, const Cancel& answer) {
    SendRequest* const request = rendezvous::find(peer, answer.serial);
    if (!request || !request->cancelling || request->sequence != answer.sequence) return;
    if (answer.what == CancelStep::not_arrived)
        return query_receiver(*request);  // ask again: the first request overtook the RTS on another path
    request->cancelling = false;
    if (answer.what != CancelStep::withdrawn) return;
    request->outcome.cancelled = true;
    rendezvous::finish(*request, MPI_SUCCESS);
}

void on_cancel(link::Peer& peer, const link::Packet& packet) {
    Cancel cancel;
    if (packet.header.bytes != sizeof cancel) return;
    std::memcpy(&cancel, packet.payload, sizeof cancel);
    if (cancel.what == CancelStep::drop) return static_cast<void>(withdraw(peer, cancel.context, cancel.sequence));
    if (cancel.what != CancelStep::ask) return on_answer(peer, cancel);
    cancel.what = answer_to(peer, cancel);
    send_cancel(peer, cancel);
}

}  // namespace

void request_cancel(SendRequest& request) {
    if (request.cancelling) return;
    request.cancelling = true;
    if (request.stage == SendRequest::Stage::offered) query_receiver(request);
}

void notify_receiver(const SendRequest& request) {
    send_cancel(*request.peer, {request.context, request.sequence, request.serial, CancelStep::drop});
}

void query_receiver(const SendRequest& request) {
    send_cancel(*request.peer, {request.context, request.sequence, request.serial, CancelStep::ask});
}

void listen_for_cancels() { link::register_handler(packet::PacketKind::cancel, on_cancel); }

}  // namespace starling::message
