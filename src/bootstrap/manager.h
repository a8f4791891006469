// The interface to another process manager (Slurm, PRRTE, Hydra, …) that started this process. Starling requires little: this process's
// rank and job, a store for each process's address, and a notice at the end.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "job/job_description.h"

namespace starling::bootstrap {

/// A manager's description of a job and of this process in it.
struct ManagedJob {
    /// The manager's own name of the job, equal in all of its processes and different from the names of all other jobs.
    std::string name;
    uint32_t rank = 0, size = 0;
    uint32_t appnum = 0;
    uint32_t universe_size = 0;  ///< MPI_UNIVERSE_SIZE; 0 if the manager does not report it
    /// Placement of the ranks as runs; every rank is in exactly one; hosts are numbered from 0.
    std::vector<job::Placement> placements;
    std::vector<std::string> hosts;  ///< host names, one per host; empty if the manager does not report names
};

enum class LookupOutcome {
    found,
    too_early,  ///< the manager has no answer yet; ask again
    nothing,    ///< there is no value and there will be none
};

/// Called once with the result of a look-up, possibly on another thread, possibly before lookup() returns. Must not call the manager.
using LookupCallback = void (*)(void* context, uint32_t rank, LookupOutcome outcome, std::string_view value);

/// A connection to a manager. Calls must come from one thread at a time. Every wait ends with a reply, or with the manager's death. Unless
/// the reply depends on other processes, it also ends after kAnswerSeconds.
class Manager {
  public:
    virtual ~Manager() = default;

    /// "PMIx", "PMI-2", "PMI-1": for messages.
    virtual const char* protocol() const = 0;

    /// Connects. Returns MPI_SUCCESS with `out` filled, or an error class with failure_text().
    virtual int start(ManagedJob& out) = 0;

    /// Stores `value` (no blanks, at most 1000 bytes), which other ranks find under `key` of this rank after publish().
    virtual int put(std::string_view key, std::string_view value) = 0;

    /// Publishes everything that was put; called once, by every rank, and does not wait. A manager without look-up on demand (PMI-1, PMI-2)
    /// enters a barrier of the whole job here, and look-ups have no answer before the last rank has entered it.
    virtual int publish() = 0;

    /// Looks up the value that `rank` has put under `key`, without waiting: calls `found` now or later. If a look-up is not possible yet,
    /// sets `asked` to false and never calls `found`. Returns an error class if the look-up failed.
    virtual int lookup(uint32_t rank, std::string_view key, LookupCallback found, void* context, bool& asked) = 0;

    /// Whether no process may disconnect and exit before all processes of its host have connected.
    virtual bool waits_for_late() const { return false; }

    /// Disconnects: the process needs the manager no longer and may end without being reported as failed.
    virtual int leave() = 0;

    /// Asks the manager to end the job. Returns if that takes effect only later, or failed.
    virtual void abort(int code, std::string_view text) = 0;
};

inline constexpr int kAnswerSeconds = 60;

/// Creates a manager for PMI-1 or PMI-2 over the socket in PMI_FD. `first` is the version to be tried first; with `insist`, no other is
/// tried.
std::unique_ptr<Manager> make_pmi_manager(int first, bool insist);

/// Creates a manager from the PMIx plugin beside the library. Returns null with failure_text() if it cannot be loaded.
std::unique_ptr<Manager> make_pmix_manager();

}  // namespace starling::bootstrap
