// Which algorithm serves which call: one table, which variables override.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace starling::collective {

/// What is chosen for. Those that share algorithms share a row: gather with gatherv, and so on.
enum class Kind : uint8_t {
    barrier,
    bcast,
    reduce,
    allreduce,
    gather,
    scatter,
    allgather,
    alltoall,
    reduce_scatter,
    scan,
};
inline constexpr int kKinds = 10;

enum class Algorithm : uint8_t {
    automatic,  ///< as an override: by the table
    linear,
    binomial,
    tree,
    dissemination,
    scatter_allgather,
    chain,
    recursive_doubling,
    rabenseifner,
    ring,
    reduce_bcast,
    bruck,
    pairwise,
    halving,
    reduce_scatter,
    node,       ///< straight through shared memory; blocking calls only
    two_level,  ///< within hosts, then between them
};
inline constexpr int kAlgorithms = 17;

/// One call as the choice sees it. All members of a communicator must come to the same choice, so
/// everything here is what all of them know.
struct Call {
    Kind kind;
    int n = 1;           ///< participants
    uint64_t bytes = 0;  ///< whole vector (bcast, reductions) or one block (gather … alltoall)
    bool commutative = true;
    bool uniform = true;       ///< blocks are all of one size
    bool node = false;         ///< the node stage is there for this call
    bool pieces = false;       ///< then: and may take it piece by piece
    bool two_levels = false;   ///< participants are on several hosts, and some share one
    bool consecutive = false;  ///< then: each host's ranks are consecutive
    bool network = false;      ///< no two participants share a host
};

/// The algorithm for a call: the override if it can serve the call, else the first row of the table that
/// can.
Algorithm select(const Call& call);

/// True if the algorithm exists for this kind and gives the right result for this call.
bool can_serve(const Call& call, Algorithm algorithm);

std::string_view name(Kind kind);
std::string_view name(Algorithm algorithm);

/// Overrides the table for one kind; `automatic` takes it back. MPI_ERR_ARG with failure_text() if this
/// kind has no such algorithm or there is no such name.
int set_override(Kind kind, std::string_view algorithm);

/// Reads STARLING_COLL_<KIND> for all kinds; a value that is none is reported on standard error and
/// ignored.
void read_overrides();

/// The table with its overrides as text, one row per line, for `starling info`.
std::string describe_selection();

}  // namespace starling::collective
