// Which algorithm serves which call: one table (algorithms.def), which variables override.
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

/// What is chosen for. Those that share algorithms share a kind: gather with gatherv, and so on.
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

/// What the algorithms of a kind are; algorithms.h says what the arguments mean.
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

/// What an algorithm needs to give the right result.
enum Needs : uint8_t {
    kNothing = 0,
    kCommutative = 1,    ///< the operation
    kUniform = 2,        ///< all blocks of one size
    kPowerOfTwo = 4,     ///< of participants
    kHosts = 8,          ///< several, of which some hold more than one; each with consecutive ranks, or kCommutative
    kSharedMemory = 16,  ///< the node stage, and that it takes so much
    kMulticast = 32      ///< what leaders of hosts send to all others at once, and that this is what is to be done
};

inline constexpr int kAnyRanks = 1 << 30;
inline constexpr uint64_t kAnyBytes = ~uint64_t{0};

/// Calls that an algorithm is taken for without being asked. None if there is nothing in it.
struct Window {
    int ranks = 0;
    uint64_t bytes = 0;
    int more_ranks_than = 0;
    bool one_host = false;  ///< not for participants on different hosts
};

struct Algorithm {
    Kind kind;
    std::string_view name;
    Function function;
    int needs;
    Window windows[2];
};

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
    bool multicast = false;    ///< one can send to all others at once, and it pays
};

/// The algorithm for a call: the override if it can serve the call, else what the table says.
const Algorithm& select(const Call& call);

/// Whether an algorithm gives the right result for a call of its kind.
bool can_serve(const Algorithm& algorithm, const Call& call);

std::string_view name(Kind kind);
/// None: there is no kind of that name.
std::optional<Kind> kind_named(std::string_view name);

/// Overrides the table for one kind; "auto" takes it back. MPI_ERR_ARG with failure_text() if this
/// kind has no such algorithm.
int set_override(Kind kind, std::string_view algorithm);
bool has_override(Kind kind);
/// The `index`th algorithm of a kind, in the table's order; null if there are no more.
const Algorithm* algorithm_of(Kind kind, int index);

/// Reads STARLING_COLL_<KIND> for all kinds; a value that is none is reported on standard error and
/// ignored.
void read_overrides();

/// The table with its overrides as text, one row per line, for `starling info`.
std::string describe_selection();

}  // namespace starling::collective
