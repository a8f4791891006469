// Selects the algorithm for a call: one table (algorithms.def), which variables override.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "datatype/datatype.h"
#include "datatype/op.h"

namespace starling::collective {

class Blocks;
class Shares;
class Task;
struct View;

/// The operations for which an algorithm is chosen. Operations that share algorithms share a kind: gather and gatherv, for example.
enum class CollectiveKind : uint8_t {
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

/// The function types of the algorithms of each kind; algorithms.h explains the arguments.
namespace signature {
using datatype::Datatype;
using datatype::Op;
using barrier = Task(View v);
using bcast = Task(View v, void* buffer, int64_t count, const Datatype& type, int root);
using reduce = Task(View v, const void* send, void* receive, int64_t count, const Datatype& type, const Op& op, int root);
using allreduce = Task(View v, const void* send, void* receive, int64_t count, const Datatype& type, const Op& op);
using gather = Task(View v, const void* send, int64_t count, const Datatype& type, Blocks receive, int root);
using scatter = Task(View v, Blocks send, void* receive, int64_t count, const Datatype& type, int root);
using allgather = Task(View v, Blocks blocks);
using alltoall = Task(View v, Blocks send, Blocks receive);
using reduce_scatter = Task(View v, const void* input, void* receive, Shares shares, const Datatype& type, const Op& op);
using scan = Task(View v, const void* send, void* receive, int64_t count, const Datatype& type, const Op& op, bool exclusive);
}  // namespace signature
using Function = std::variant<signature::barrier*, signature::bcast*, signature::reduce*, signature::allreduce*,
                              signature::gather*, signature::scatter*, signature::allgather*, signature::alltoall*,
                              signature::reduce_scatter*, signature::scan*>;

/// Conditions under which an algorithm returns the right result.
enum Needs : uint8_t {
    kNothing = 0,
    kCommutative = 1,  ///< the reduction operation is commutative
    kUniform = 2,      ///< all blocks have the same size
    kPowerOfTwo = 4,   ///< the number of participants is a power of two
    kHosts = 8,  ///< several hosts, one with several participants; consecutive ranks on each host, or a commutative operation
    kSharedMemory = 16,  ///< the call has the shared-memory stage, and its size fits
    kMulticast = 32,     ///< multicast among the hosts' leaders is available, and pays
    kTurns = 64,         ///< the leaders of the participants' hosts can multicast in turns
    kOwnHosts = 128      ///< no two participants share a host
};

inline constexpr int kAnyRanks = 1 << 30;
inline constexpr uint64_t kAnyBytes = ~uint64_t{0};
/// Blocks, in bytes, up to which an allgather never multicasts in turns.
inline constexpr uint64_t kLeastOfTurns = 32 << 10;

/// A range of calls for which the table chooses the algorithm if no variable does. With ranks = 0 it matches no call.
struct CallRange {
    int ranks = 0;
    uint64_t bytes = 0;
    int more_ranks_than = 0;
    uint64_t more_bytes_than = 0;
    bool turns = false;     ///< whether the range has only calls whose leaders can multicast in turns
    bool one_host = false;  ///< whether the range excludes calls whose participants are on several hosts
};

struct Algorithm {
    CollectiveKind kind;
    std::string_view name;
    Function function;
    int needs;
    CallRange windows[2];
};

/// One call as the selection sees it. All members of a communicator must choose the same algorithm, so every member here has a value that
/// all of them know.
struct CallParameters {
    CollectiveKind kind;
    int n = 1;           ///< participants
    uint64_t bytes = 0;  ///< bytes of the whole vector (bcast, reductions) or of one block (gather … alltoall)
    bool commutative = true;
    bool uniform = true;       ///< whether all blocks have the same size
    bool node = false;         ///< whether the shared-memory stage is available for this call
    bool pieces = false;       ///< whether the stage may run the call piece by piece; only with `node`
    bool two_levels = false;   ///< whether participants are on several hosts, and some share one
    bool consecutive = false;  ///< whether each host's ranks are consecutive; only with `two_levels`
    bool network = false;      ///< whether no two participants share a host; for a scan, whether not all share one
    bool multicast = false;    ///< whether multicast to all other participants is available and pays for short data
    bool turns = false;        ///< whether the leaders of the participants' hosts can multicast long data in turns
};

/// Returns the algorithm for a call: the override if it can serve the call, else the table's choice.
const Algorithm& select(const CallParameters& call);

/// Returns whether an algorithm gives the right result for a call of its kind.
bool can_serve(const Algorithm& algorithm, const CallParameters& call);

std::string_view name(CollectiveKind kind);
/// Returns the kind of that name; empty if there is none.
std::optional<CollectiveKind> kind_named(std::string_view name);

/// Overrides the table for one kind; "auto" removes the override. Returns MPI_ERR_ARG with failure_text() if this kind has no such
/// algorithm.
int set_override(CollectiveKind kind, std::string_view algorithm);
bool has_override(CollectiveKind kind);
/// Returns the `index`th algorithm of a kind, in table order; null after the last.
const Algorithm* algorithm_of(CollectiveKind kind, int index);

/// Reads STARLING_COLL_<KIND> for all kinds; an invalid value is reported on standard error and ignored.
void read_overrides();

/// Returns the table with its overrides as text, one row per line, for `starling info`.
std::string describe_selection();

}  // namespace starling::collective
