// Replaces the selection table (select.h) for one communicator. While a profile explores (STARLING_PROFILE_EXPLORE), the algorithms that
// can serve a call take turns. Otherwise a plan that mpiexec has read chooses the algorithms.
//
// All members must choose the same algorithm without exchanging messages. So the choice depends only on facts that all of them know: the
// call, the number of calls before it on the communicator, and the job's settings. Therefore it applies only to blocking calls, whose
// duration can be measured, on intra-communicators within one job. Where members know different sizes of a call (MPI_Gatherv) nothing is
// overridden. A user's choice for an operation (STARLING_COLL_...) has precedence.
//
// Not thread-safe: callers hold the library's lock (base/lock.h).
#pragma once

#include <string>
#include <string_view>

#include "base/size_classes.h"
#include "collective/select.h"

namespace starling::collective {

/// The override of one communicator.
class AlgorithmOverride {
  public:
    /// Begins a call, for which choose() then draws one algorithm. choose() may be called twice for one call: first with the shared-memory
    /// stage and then, if the stage does not serve the call, for messages.
    void begin() { drawn_ = false; }
    /// Returns the algorithm that was drawn for the call, if it can serve the call; otherwise the table's choice.
    const Algorithm& choose(const CallParameters& call);
    /// Returns whether the last choose() tried an algorithm that the table would not have chosen.
    bool tried() const { return tried_; }

  private:
    const Algorithm* next(const CallParameters& call);

    uint32_t turns_[kKinds][kSizeClassCount] = {};
    const Algorithm* requested_ = nullptr;
    bool drawn_ = false, tried_ = false;
};

/// Returns whether a profile or a plan overrides the table in this process.
bool steers();

/// Returns the algorithm for the `turn`th call of this kind and size, for a profile that explores. Each algorithm that can serve the call
/// is used for kCallsInARow calls: first the table's choice, then the others in table order. Null if only one can serve it.
const Algorithm* alternative(const CallParameters& call, uint32_t turn);
inline constexpr uint32_t kCallsInARow = 4;

/// Reads a plan's choices in the format of STARLING_PLAN_COLLECTIVES: entries such as "allreduce/<=64/16=ring", separated by ";". An entry
/// applies to calls of that operation in that size class on communicators of that many processes. Returns MPI_ERR_ARG with failure_text()
/// if an entry is not valid.
int read_planned(std::string_view text);
/// Returns the plan's algorithm for a call; null: the plan has none.
const Algorithm* planned(const CallParameters& call);

}  // namespace starling::collective
