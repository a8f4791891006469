// What a collective call is, for those who look at it from outside while it waits (progress/wait_report.h).
#pragma once

#include <cstdint>

#include "message/channel.h"
#include "progress/wait_report.h"

namespace starling::collective {

class NodeOwner;

/// Null and 0 for what is not known.
struct Label {
    const char* function = nullptr;            ///< "MPI_Barrier", lasts for ever; null: the one that waits
    message::MatchContext* channel = nullptr;  ///< that its messages go through
    uint32_t number =
        0;  ///< among the collective operations of the communicator, from 1; persistent ones are started in no common order, and have none
    int tag = 0;                       ///< of its messages
    const NodeOwner* stage = nullptr;  ///< that it may go through
};

/// Tells of a wait in this operation: its place, and the messages or members that it waits for.
void tell(const Label& label, progress::WaitReporter& teller);

}  // namespace starling::collective
