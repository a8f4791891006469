// What chooses algorithms instead of the table (select.h): an exploring profile (STARLING_PROFILE_EXPLORE), which has those that
// can serve a call take turns, or the plan that mpiexec has read. All members must come to the same choice without a word, so it is
// made of what all know: the call itself, how many there were before on the communicator, and the job's settings. So it is for
// blocking calls alone, whose time is known, on communicators of one group, of one job. Where members know different sizes of a call
// (MPI_Gatherv) there is nothing to choose. What the user has chosen for an operation (STARLING_COLL_...) wins.
//
// Not thread-safe: within the library's lock (base/lock.h).
#pragma once

#include <string>
#include <string_view>

#include "base/size_classes.h"
#include "collective/select.h"

namespace starling::collective {

/// Of one communicator.
class AlgorithmOverride {
  public:
    /// A call begins. It may choose twice: first with the node stage, and, if it is not to go there, by messages.
    void begin() { drawn_ = false; }
    /// The algorithm for it, as select() gives one.
    const Algorithm& choose(const Call& call);
    /// Whether the table would have taken another one.
    bool tried() const { return tried_; }

  private:
    const Algorithm* next(const Call& call);

    uint32_t turns_[kKinds][kSizeClassCount] = {};
    const Algorithm* wish_ = nullptr;
    bool drawn_ = false, tried_ = false;
};

/// Whether anything but the table and the user's variables chooses, in this process.
bool steers();

/// Those that can serve a call, each so many calls in a row: what the table takes first, the others in its order. Null where there is
/// but one.
const Algorithm* alternative(const Call& call, uint32_t turn);
inline constexpr uint32_t kCallsInARow = 4;

/// Reads a plan's choices, as in STARLING_PLAN_COLLECTIVES: "allreduce/<=64/16=ring" and more of them, by ";": for calls of an
/// operation of this size class on communicators of so many processes. MPI_ERR_ARG with failure_text() if they are not.
int read_planned(std::string_view text);
/// What is planned for a call; null: nothing.
const Algorithm* planned(const Call& call);

}  // namespace starling::collective
