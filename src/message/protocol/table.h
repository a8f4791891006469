// The table of the ways in which a message moves. The sender decides on eager; of what is offered the receiver takes the first row that
// can serve it and pays. STARLING_LONG_PROTOCOL puts one row before the others, where it can serve at all. `starling info
// --protocols` prints it. A new way is a file and a row.
#pragma once

#include <cstddef>

#include "base/config.h"
#include "message/protocol/protocol.h"

namespace starling::message {

struct Protocol {
    const char* name;
    LongProtocol choice;  ///< by which the variable names it
    const char* when;     ///< sentences for people
    const char* costs;
    const char* instead;  ///< what serves where it can't, or fails

    // Null in the row of eager messages.
    bool (*can)(const Matched& message) = nullptr;    ///< whether it can serve
    bool (*pays)(const Matched& message) = nullptr;   ///< whether it is the best of those that can, if no row before is
    bool (*start)(const Matched& message) = nullptr;  ///< false: it can't just now, nothing has happened
    void (*fail)(const Gone& gone) = nullptr;         ///< ends what is under way with those who are gone; null: nothing ever is
};

/// The rows, in the order in which they are asked.
const Protocol* protocols(size_t& count);

/// Begins to move a message; its receive is completed when it is there, or has failed.
void fetch(const Matched& message);

/// Fails the receives that wait for data of those who are gone.
void fail_fetches(const Gone& gone);

}  // namespace starling::message
