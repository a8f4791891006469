// What the calls of this room share: asking the launcher, and telling all members of a communicator what their root found out.
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

/// One call to the launcher; messages keep moving while it is under way. Error class with failure_text().
int call_launcher(control::MessageKind kind, std::string_view payload, std::string& reply);

/// What the root of a collective call found out, for the others: an error with its sentence, or the result.
struct RootResult {
    int error = 0;
    std::string text;
    std::string result;
};
/// The root's part of such a call: `find_out` fills RootResult::result and returns an error class. The others wait for the verdict,
/// so memory that is not there is one like any other.
template <typename FindOut>
RootResult evaluate_at_root(FindOut&& find_out) {
    RootResult verdict;
    try {
        verdict.error = find_out(verdict.result);
        if (!verdict.error && KeptMemory::is_short()) verdict.error = fail(MPI_ERR_NO_MEM, "the root has no memory left");
        if (verdict.error) verdict.text = failure_text();
    } catch (const std::bad_alloc&) {
        verdict.error = MPI_ERR_NO_MEM;
        verdict.text.clear();
    }
    return verdict;
}

/// Ends a call that makes something: whether every member could make its part. `error` is this member's, with its failure_text().
/// Returned is what goes wrong for all of them: then each undoes its part. Collective.
int agree(comm::Comm& comm, int error);

/// Spreads the root's verdict; on an error sets failure_text() everywhere and returns it. Collective.
int broadcast_result(comm::Comm& comm, int root, RootResult& verdict);

}  // namespace starling::dynamic
