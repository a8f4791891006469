// Point-to-point messages on match contexts. All calls need the library's lock.
#pragma once

#include "message/channel.h"
#include "message/request.h"

namespace starling::message {

struct Unexpected;

enum class SendMode : uint8_t { standard, synchronous };

/// The facts about a message that send_at_once() found before it returned false, for start_unsent().
struct Unsent {
    link::Peer* peer;  ///< peer of the destination; null, with failure_text(), if there is none
    uint64_t bytes;    ///< size of the packed message, bytes
    bool eager;        ///< whether the message is short enough to be sent without a CTS
};

/// Implementations of send_at_once(): send_short() for mode `standard`, must_send_rts() for mode `synchronous`, which needs an RTS and
/// never sends at once.
bool send_short(MatchContext& channel, const void* buffer, int64_t count, const datatype::Datatype& type, int destination,
                int tag, Unsent& unsent);
Unsent must_send_rts(MatchContext& channel, int64_t count, const datatype::Datatype& type, int destination);
/// Sends a message that is short, if the path has room and no earlier message is queued. Returns false if nothing was sent; start_unsent()
/// then starts the send.
inline bool send_at_once(MatchContext& channel, const void* buffer, int64_t count, const datatype::Datatype& type,
                         int destination, int tag, SendMode mode, Unsent& unsent) {
    if (mode == SendMode::standard) [[likely]]
        return send_short(channel, buffer, count, type, destination, tag, unsent);
    unsent = must_send_rts(channel, count, type, destination);
    return false;
}
/// Starts a send that send_at_once() refused, with the arguments of that call. `request` is new.
void start_unsent(SendRequest& request, MatchContext& channel, const void* buffer, int64_t count,
                  const datatype::Datatype& type, int destination, int tag, const Unsent& unsent);

/// Starts a send: send_at_once(), then start_unsent() if needed. An eager `request` may be done on return. Failures complete the request
/// with outcome.error. `type` must be committed and stay alive until the request is done.
void start_send(SendRequest& request, MatchContext& channel, const void* buffer, int64_t count, const datatype::Datatype& type,
                int destination, int tag, SendMode mode);

/// Starts an eager send of at most transport::kLeastPayload bytes, whatever STARLING_EAGER_LIMIT is: for messages that their receiver may
/// never receive, so that no send waits for it.
void start_eager_send(SendRequest& request, MatchContext& channel, const void* buffer, int64_t count,
                      const datatype::Datatype& type, int destination, int tag);

/// Starts a receive; source may be MPI_ANY_SOURCE, tag MPI_ANY_TAG.
void start_receive(ReceiveRequest& request, MatchContext& channel, void* buffer, int64_t count, const datatype::Datatype& type,
                   int source, int tag);

/// Returns the first message that matches (wildcards allowed) and leaves it in its queue. Cancelled messages before it are removed. With
/// ProbeMode::to_take the sender can no longer cancel the message, and the caller must take it.
enum class ProbeMode : uint8_t { only, to_take };
Unexpected* find_unexpected(MatchContext& channel, int source, int tag, ProbeMode look);

/// Starts the receive of a message that a matched probe took out of its queue; the message is consumed.
void start_matched_receive(ReceiveRequest& request, Unexpected& message, void* buffer, int64_t count,
                           const datatype::Datatype& type);

/// Returns whether a receive from `source` would wait in vain: the rank has failed or its job has ended. For MPI_ANY_SOURCE: a rank has failed
/// and the program has not acknowledged it, or no rank is left that could send (message/senders.h).
bool sender_ended(MatchContext& channel, int source);
/// Returns whether `source` has failed; for MPI_ANY_SOURCE: any rank whose failure the program has not acknowledged. A job that has ended
/// normally has not.
bool sender_failed(MatchContext& channel, int source);

/// Cancels a posted receive. Returns true if it was still unmatched; it is then done, with outcome.cancelled.
bool cancel_receive(ReceiveRequest& request);
/// Cancels a receive of the program: as cancel_receive(), but also one that ended in vain because its sender's job has ended normally. The
/// program waits for nothing, so it gets no error.
bool cancel_programs_receive(ReceiveRequest& request);

/// Cancels a send that is not done, for MPI_Cancel. Returns true if the request is done afterwards.
///
/// A synchronous send to a process on this host is cancelled unless it was matched (match_or_cancel.h). A synchronous send to another host
/// stays open until its receiver has answered whether it was matched (remote_cancel.h). Any other send, and one that was matched, is
/// abandoned: it completes at once, as if it had been buffered, and a copy of its data is sent in its place. A receiver that was reading
/// the sender's memory detects this afterwards and asks for the copy (Rts::abandoned_sends).
///
/// Throws std::bad_alloc if there is no memory for the copy; the send is then unchanged.
bool abandon(SendRequest& request);

}  // namespace starling::message
