// The description of a collective call for wait reports (progress/wait_report.h).
#pragma once

#include <cstdint>

#include "message/channel.h"
#include "progress/wait_report.h"

namespace starling::collective {

class NodeOwner;

/// Null and 0 mean unknown.
struct OperationLabel {
    const char* function = nullptr;            ///< such as "MPI_Barrier", a literal; null: the function that waits
    message::MatchContext* channel = nullptr;  ///< channel of its messages
    uint32_t number =
        0;  ///< among the collective operations of the communicator, from 1; 0 for persistent ones, which have no common order
    int tag = 0;                       ///< tag of its messages
    const NodeOwner* stage = nullptr;  ///< stage that it may use
};

/// Reports a wait in this operation: its place, and the messages or members for which it waits.
void tell(const OperationLabel& label, progress::WaitReporter& teller);

}  // namespace starling::collective
