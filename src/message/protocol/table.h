// The table of message protocols. The sender decides on eager. For an RTS, the receiver takes the first row that can be used and pays.
// STARLING_LONG_PROTOCOL prefers one row wherever it can be used. `starling info --protocols` prints the table. A new protocol is a file
// and a row.
#pragma once

#include <cstddef>

#include "base/config.h"
#include "message/protocol/protocol.h"

namespace starling::message {

struct Protocol {
    const char* name;
    LongProtocol choice;  ///< value of STARLING_LONG_PROTOCOL that selects this protocol
    const char* when;     ///< condition of use and costs, as sentences for users
    const char* costs;
    const char* instead;  ///< protocol used if this one cannot be used, or fails

    // The functions below are null in the row of eager messages.
    bool (*is_possible)(const Matched& message) = nullptr;  ///< whether the protocol can be used
    /// Whether this protocol is the best of the usable ones. Not called if that of an earlier row is.
    bool (*pays)(const Matched& message) = nullptr;
    bool (*start)(const Matched& message) = nullptr;  ///< starts the transfer; false: not possible now
    void (*fail)(const Gone& gone) = nullptr;         ///< ends the transfers with failed processes; null: there never are any
};

/// Returns the rows, in the order in which fetch() tries them.
const Protocol* protocols(size_t& count);

/// Starts the transfer of a message; the receive is completed when all data has arrived, or on failure.
void fetch(const Matched& message);

/// Fails the receives that wait for data of failed processes.
void fail_fetches(const Gone& gone);

}  // namespace starling::message
