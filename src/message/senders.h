// The senders of a match context: which of its ranks may still send to a receive or a probe from MPI_ANY_SOURCE. One rule serves receives,
// probes and suspended receives, on communicators and inter-communicators:
//
// - A rank that has failed ends the wait, unless the program has acknowledged its failure (MPIX_Comm_ack_failed).
// - A rank whose job has ended normally is not a sender any more. It takes nothing from the others.
// - The wait also ends when no rank is left that could send. The own rank is not one of them while it waits, unless another of its threads
//   may send (MPI_THREAD_MULTIPLE).
// - A receive with a handle waits for nothing by itself, so the own rank counts for it once failures are acknowledged.
#pragma once

#include "message/channel.h"

namespace starling::message {

struct Senders {
    bool may_send = false;                    ///< whether a living rank may send while this process waits
    bool has_own_rank = false;                ///< whether this process is one of the ranks
    bool has_failure = false;                 ///< whether any rank has failed
    bool has_ended = false;                   ///< whether any rank has failed, or its job has ended
    bool has_unacknowledged_end = false;      ///< whether the program has not acknowledged one of these ends
    bool has_unacknowledged_failure = false;  ///< whether a rank has failed and the program has not acknowledged it
};

/// Returns what this process knows about the ranks of a match context. Reads the state of every rank.
Senders senders_of(const MatchContext& channel);

}  // namespace starling::message
