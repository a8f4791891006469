// Another process manager that started this process: Slurm, PRRTE, Hydra, … What Starling asks of it is
// little: who this process is, a place for each process's address, and to be told of the end.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "job/job_description.h"

namespace starling::bootstrap {

/// What a manager says of a job and of this process in it.
struct ManagedJob {
    std::string name;  ///< the manager's own, the same in all its processes and in no other job it runs
    uint32_t rank = 0, size = 0;
    uint32_t appnum = 0;
    uint32_t universe_size = 0;              ///< 0 if the manager does not say
    std::vector<job::Placement> placements;  ///< every rank in exactly one, hosts numbered from 0
    std::vector<std::string> hosts;          ///< one per host; names may be empty where the manager does not say
};

enum class Outcome {
    found,
    too_early,  ///< the manager knows nothing yet; to be asked again
    nothing,    ///< there is nothing and there will be nothing
};

/// Told once what a look-up came to, possibly on another thread, possibly before look_up() returns. Must
/// not call the manager.
using Found = void (*)(void* context, uint32_t rank, Outcome outcome, std::string_view value);

/// Calls come from one thread at a time. Every wait ends: with an answer, at the manager's death, or,
/// unless the answer depends on other processes, after kAnswerSeconds.
class Manager {
  public:
    virtual ~Manager() = default;

    /// "PMIx", "PMI-2", "PMI-1": for messages.
    virtual const char* protocol() const = 0;

    /// Says hello. MPI_SUCCESS with `out` filled, or an error class with failure_text().
    virtual int start(ManagedJob& out) = 0;

    /// Makes `value` (no blanks, at most 1000 bytes) what others find under `key` of this rank once
    /// publish() was called.
    virtual int put(std::string_view key, std::string_view value) = 0;

    /// Hands out what was put; called once, by every rank, and waits for no one. Where the manager has no
    /// look-up on demand (PMI-1, PMI-2) this enters a barrier of the whole job, and a look-up has no answer
    /// before the last rank has come.
    virtual int publish() = 0;

    /// Looks up what `rank` has put under `key`, without waiting: `found` is called, at once or later, or
    /// not at all if it is too early to ask, which `asked` says. An error class if it can't be found out.
    virtual int look_up(uint32_t rank, std::string_view key, Found found, void* context, bool& asked) = 0;

    /// This process needs the manager no more: it may end without being missed.
    virtual int leave() = 0;

    /// Asks the manager to end the job. Returns where that takes effect only later, or failed.
    virtual void abort(int code, std::string_view text) = 0;
};

inline constexpr int kAnswerSeconds = 60;

/// By PMI-1 or PMI-2 over the socket that PMI_FD names. `first` is the version to be tried first; `insist`:
/// and no other.
std::unique_ptr<Manager> make_pmi_manager(int first, bool insist);

/// By the PMIx plugin beside the library. Null with failure_text() if it can't be loaded.
std::unique_ptr<Manager> make_pmix_manager();

}  // namespace starling::bootstrap
