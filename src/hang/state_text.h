// The part of a sentence that describes the state of one process, or of several in the same state.
#pragma once

#include <string>

#include "hang/collectives.h"
#include "hang/report.h"

namespace starling::hang {

/// The other processes, as a sentence about one process needs them.
struct Others {
    uint64_t home = 0;                             ///< the job whose ranks are named by number alone
    const CollectiveCalls* collectives = nullptr;  ///< null: not known
    /// The largest values of a group of processes, whose smallest values the described process has; null: the sentence has one subject.
    const RankReport* most = nullptr;
};

/// Returns the text that follows the name of the process, such as "waits in MPI_Barrier on ...".
std::string state_text(const RankReport& rank, const Others& others);

/// Returns whether a process outside the library uses hardly any processor time.
bool is_idle(const RankReport& rank);

}  // namespace starling::hang
