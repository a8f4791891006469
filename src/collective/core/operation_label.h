// The description of a collective call for wait reports (progress/wait_report.h).
#pragma once

#include <cstdint>

#include "message/channel.h"
#include "progress/wait_report.h"

namespace starling::collective {

class NodeOwner;

/// A collective call as a wait report names it. Null and 0 mean unknown.
struct OperationLabel {
    const char* function = nullptr;            ///< such as "MPI_Barrier", a literal; null: the function that waits
    message::MatchContext* channel = nullptr;  ///< channel of the operation's messages
    uint32_t number =
        0;  ///< number among the communicator's collective operations, from 1; 0 for persistent ones, which have no common order
    int tag = 0;                       ///< first tag of the operation's messages
    const NodeOwner* stage = nullptr;  ///< shared-memory stage that the operation may use
    int tags = 1;                      ///< number of successive tags that its messages have
    int tag_bits = 0;                  ///< bits that the tags of some of its messages have in addition
};

/// Reports a wait in this operation: its number, and the messages or members for which it waits.
void report_wait(const OperationLabel& label, progress::WaitReporter& teller);

}  // namespace starling::collective
