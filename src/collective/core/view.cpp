#include "collective/core/view.h"

#include <cinttypes>

#include "base/error.h"
#include "message/error_marker.h"

namespace starling::collective {

void View::start_failed(message::SendRequest& request, uint64_t expected, int to) {
    using message::ErrorMarker;
    exchange->start_marker(request, ErrorMarker::of(error), static_cast<int64_t>(ErrorMarker::length(expected)),
                           participant(to), tag);
}

namespace {

/// Returns the class in an error marker that lies in the receive's buffer; MPI_SUCCESS if there is none. The marker may have either length:
/// after a failure its sender may be in another operation, such as that which frees the object, and expect other data.
int marked_in_buffer(const message::ReceiveRequest& request) {
    std::byte first[message::ErrorMarker::kBytes];
    if (request.outcome.bytes != sizeof first && request.outcome.bytes != message::ErrorMarker::kMost) return MPI_SUCCESS;
    datatype::pack(*request.type, request.count, request.buffer, 0, first, sizeof first);
    return message::ErrorMarker::read(first, sizeof first);
}

}  // namespace

int View::bad_receive(const message::ReceiveRequest& request, uint64_t expected) const {
    const int error = progress::error_of(request);
    if (error == MPI_SUCCESS) {
        if (const int dead = ended()) return dead;
        if (const int marked = marked_in_buffer(request)) return message::ErrorMarker::failed_elsewhere(marked);
        return wrong_length(request.outcome.bytes, expected);
    }
    // This receive was abandoned because a third member has ended. Its sender, if alive, still sends and may wait until the message is
    // received.
    if (error == MPI_ERR_PROC_ABORTED && request.of_all) exchange->throw_away(0, request.source, request.tag);
    if (expected != 0 || error != MPI_ERR_TRUNCATE) return error;
    if (const int dead = ended()) return dead;
    return fail(MPI_ERR_TRUNCATE, "a collective operation failed at another member: it ended or had an error");
}

int View::wrong_length(uint64_t bytes, uint64_t expected) const {
    if (const int error = ended()) return error;
    return fail(MPI_ERR_OTHER,
                "a collective operation received %" PRIu64 " bytes where %" PRIu64
                " were expected: a member failed, or the members disagree on counts or types",
                bytes, expected);
}

int View::ended() const {
    const int gone = exchange->ended();
    return gone < 0 ? MPI_SUCCESS : fail(MPI_ERR_PROC_ABORTED, "a collective operation failed: member %d has ended", gone);
}

RequestGroup::~RequestGroup() {
    for (int i = 0; i < sent_; ++i)
        if (!sends_[i].done) panic("a collective operation ended with an incomplete send");
    for (int i = 0; i < received_; ++i)
        if (!receives_[i].request.done) panic("a collective operation ended with an incomplete receive");
}

bool RequestGroup::await_ready() const {
    for (int i = 0; i < received_; ++i)
        if (!receives_[i].request.done) return false;
    for (int i = 0; i < sent_; ++i)
        if (!sends_[i].done) return false;
    return true;
}

void RequestGroup::await_suspend(std::coroutine_handle<> handle) {
    for (int i = 0; i < received_; ++i) wait_for(receives_[i].request, handle);
    for (int i = 0; i < sent_; ++i) wait_for(sends_[i], handle);
}

void RequestGroup::await_resume() {
    for (int i = 0; i < received_; ++i) view_.finish(receives_[i].request, receives_[i].expected);
    for (int i = 0; i < sent_; ++i) view_.finish(sends_[i]);
    sent_ = received_ = 0;
}

}  // namespace starling::collective
