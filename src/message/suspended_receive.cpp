#include "message/suspended_receive.h"

#include "message/match.h"
#include "message/point_to_point.h"
#include "message/receive.h"
#include "message/senders.h"
#include "mpi-ext.h"

namespace starling::message {

bool can_suspend(const ReceiveRequest& request) {
    if (request.source != MPI_ANY_SOURCE || request.magic != Request::kMagic || request.of_all || request.channel->revoked())
        return false;
    const Senders senders = senders_of(*request.channel);
    return senders.may_send || (senders.has_own_rank && senders.has_unacknowledged_end);
}

void suspend(ReceiveRequest& request) {
    if (request.done) return;
    request.outcome.error = MPIX_ERR_PROC_FAILED_PENDING;
    request.complete();
}

bool is_suspended(const Request& request) {
    return request.done && request.kind == RequestKind::receive && static_cast<const ReceiveRequest&>(request).hook.linked();
}

void resume(ReceiveRequest& request) {
    request.done = false;
    request.outcome = Outcome{};
}

void resume_acknowledged(MatchContext& channel) {
    if (sender_ended(channel, MPI_ANY_SOURCE)) fail_receives();
    auto& posted = channel.queues().posted_any;
    for (ReceiveRequest* request = posted.front(); request; request = posted.next(request))
        if (is_suspended(*request) && !is_in_vain(*request)) resume(*request);
}

}  // namespace starling::message
