// Common steps of the calls in this room: calls to the launcher, and the broadcast of the root's result to all members of a communicator.
#pragma once

#include <new>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/kept_memory.h"
#include "comm/comm.h"
#include "control/control_protocol.h"
#include "mpi.h"

namespace starling::dynamic {

/// Calls the launcher; other messages are handled while it waits. Returns an error class with failure_text().
int call_launcher(control::MessageKind kind, std::string_view payload, std::string& reply);

/// The root's result of a collective call, which the other members receive: an error with its text, or a result in bytes.
struct RootResult {
    int error = 0;
    std::string text;
    std::string result;
};
/// Runs the root's part of a collective call: `find_out` fills RootResult::result and returns an error class. The other members wait for
/// the result, so std::bad_alloc is turned into an error that they receive.
template <typename FindOut>
RootResult evaluate_at_root(FindOut&& find_out) {
    RootResult verdict;
    try {
        verdict.error = find_out(verdict.result);
        if (!verdict.error && KeptMemory::is_short())
            verdict.error = fail(MPI_ERR_NO_MEM, "the root process of the call is out of memory");
        if (verdict.error) verdict.text = failure_text();
    } catch (const std::bad_alloc&) {
        verdict.error = MPI_ERR_NO_MEM;
        verdict.text.clear();
    }
    return verdict;
}

/// Ends a call that creates something: determines whether every member could create its part. `error` is this member's error, with its
/// failure_text(). Returns the error of all; after an error each member undoes its part. Collective.
int agree(comm::Comm& comm, int error);

/// Broadcasts the root's result. On an error, sets failure_text() at all members and returns the error. Collective.
int broadcast_result(comm::Comm& comm, int root, RootResult& verdict);

}  // namespace starling::dynamic
