// Point-to-point messages on channels. All calls need the library's lock.
#pragma once

#include "message/channel.h"
#include "message/request.h"

namespace starling::message {

struct Unexpected;

enum class Mode : uint8_t { standard, synchronous };

/// What send_at_once() has found out about a message that it could not send.
struct Unsent {
    link::Peer* peer;  ///< null with failure_text(): there is none
    uint64_t bytes;    ///< packed size
    bool eager;        ///< short enough to go without asking the receiver
};

/// send_at_once() in mode `standard`, and in the other.
bool send_short(MatchContext& channel, const void* buffer, int64_t count, const datatype::Datatype& type, int destination,
                int tag, Unsent& unsent);
Unsent must_ask_first(MatchContext& channel, int64_t count, const datatype::Datatype& type, int destination);
/// Sends a message that is short, where nothing is in its way. False: nothing has happened, start_unsent() does it.
inline bool send_at_once(MatchContext& channel, const void* buffer, int64_t count, const datatype::Datatype& type,
                         int destination, int tag, Mode mode, Unsent& unsent) {
    if (mode == Mode::standard) [[likely]]
        return send_short(channel, buffer, count, type, destination, tag, unsent);
    unsent = must_ask_first(channel, count, type, destination);
    return false;
}
/// Starts what send_at_once() could not send, with the same arguments. `request` is new.
void start_unsent(SendRequest& request, MatchContext& channel, const void* buffer, int64_t count,
                  const datatype::Datatype& type, int destination, int tag, const Unsent& unsent);

/// Both; `request` may be done on return (eager). Failures complete the request with outcome.error.
/// `type` must be committed and stay alive until the request is done.
void start_send(SendRequest& request, MatchContext& channel, const void* buffer, int64_t count, const datatype::Datatype& type,
                int destination, int tag, Mode mode);

/// Starts a receive; source may be MPI_ANY_SOURCE, tag MPI_ANY_TAG.
void start_receive(ReceiveRequest& request, MatchContext& channel, void* buffer, int64_t count, const datatype::Datatype& type,
                   int source, int tag);

/// The first message for a receive with these (wildcards allowed), left in its queue; those that were cancelled leave it. Once one was
/// found to be taken, its sender can't cancel it any more, and the caller takes it.
enum class Look : uint8_t { only, to_take };
Unexpected* find_unexpected(MatchContext& channel, int source, int tag, Look look);

/// Starts the receive of a message that a matched probe took out of its queue; the message is consumed.
void start_matched_receive(ReceiveRequest& request, Unexpected& message, void* buffer, int64_t count,
                           const datatype::Datatype& type);

/// Whether no message can come any more from a rank (or, MPI_ANY_SOURCE, from one of them): its job is gone.
bool sender_gone(MatchContext& channel, int source);

/// Cancels a posted receive; true if it was still unmatched (it is then done, outcome.cancelled).
bool cancel_receive(ReceiveRequest& request);

/// MPI_Cancel of a send that is not done. A synchronous one to a process on this host is cancelled unless it was matched (match_or_cancel.h); to
/// another host it goes on until its receiver has answered whether it was (remote_cancel.h). Any other, and what was matched, completes at
/// once, as if it had been buffered. Its data is copied, and goes on without the request; a receiver that reads the sender's memory finds
/// out afterwards that this may be used again, and asks for the copy (Rts::let_go). True if the request is done by that;
/// std::bad_alloc if there is no memory for the copy, and then nothing has happened.
bool abandon(SendRequest& request);

}  // namespace starling::message
