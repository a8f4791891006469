// What spawning, connecting and naming share.
#pragma once

#include <string>
#include <string_view>

#include "boot/control_protocol.h"
#include "comm/comm.h"

namespace starling::mpi {

/// One call to the launcher; messages keep moving while it is under way. Error class with failure_text().
int call_launcher(boot::MessageKind kind, std::string_view payload, std::string& reply);

/// Gives `bytes` of the root to all members of an intra-communicator. Collective.
int spread(comm::Comm& comm, int root, std::string& bytes);

/// What the root of a collective call found out, for the others: an error with its sentence, or the result.
struct Verdict {
    int error = 0;
    std::string text;
    std::string result;
};
/// Spreads the root's verdict; on an error sets failure_text() everywhere and returns it.
int spread(comm::Comm& comm, int root, Verdict& verdict);

/// Remembers that the inter-communicator leads to a job spawned by this one.
void note_spawned(comm::Comm& comm, boot::JobId child);

/// Sets up the upcalls for connection requests (port.cpp).
void start_ports();

}  // namespace starling::mpi
