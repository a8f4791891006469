// The guard: a tiny process that outlives a launcher killed at any instant and ends what it had started.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace starling::launch {

/// Why a process and not only PR_SET_PDEATHSIG: that reaches the ranks themselves, but not what a rank
/// started (a shell wrapper's program). Why not only process groups: a grandchild may have left its group.
/// So: the death signal for the ranks, at once; the guard then kills their process groups; last it kills
/// whoever carries the launcher's mark in its environment. The guard has a process group of its own,
/// another name and no mark, so that neither Ctrl-C nor `pkill mpiexec` nor the sweep of an outer launcher
/// reaches it.
class OrphanReaper {
  public:
    OrphanReaper() = default;
    OrphanReaper(const OrphanReaper&) = delete;
    OrphanReaper& operator=(const OrphanReaper&) = delete;

    /// Forks the guard. `mark` is the environment entry (NAME=value) all processes of this launcher carry;
    /// `argv` is main's. Returns false with failure_text() if no process can be started.
    bool start(std::string mark, char** argv);
    /// Forks it again after it was killed.
    bool restart();
    pid_t pid() const { return pid_; }

    /// A word that the guard reads: a process group to kill, 0 for none. The starting child itself stores
    /// its pid there before exec, so that no instant is left uncovered.
    volatile pid_t* acquire_slot();
    void release_slot(volatile pid_t* slot);

    /// Ends the guard: all is cleaned up. Returns when it is gone.
    void dismiss();

  private:
    [[noreturn]] void serve(pid_t launcher, int launcher_fd);

    static constexpr uint32_t kSlots = 1 << 18;
    volatile pid_t* slots_ = nullptr;  ///< shared with the guard; sparse
    uint32_t used_ = 0;                ///< slots ever used
    uint32_t free_[64] = {};           ///< a few released ones
    uint32_t free_count_ = 0;
    std::string mark_;
    char** argv_ = nullptr;
    pid_t pid_ = -1;
};

/// Sends SIGKILL to every process of this user whose environment holds the entry `mark`, until none is left
/// (a process may fork while it is being looked for). Never the caller. Returns how many were killed.
int kill_marked(const std::string& mark);

}  // namespace starling::launch
