// The guard: a tiny process that survives a launcher killed at any instant, and kills the processes that the launcher had started.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace starling::launch {

/// PR_SET_PDEATHSIG alone does not suffice: it reaches the ranks, but not the processes that a rank started (the program of a shell
/// wrapper). Process groups alone do not suffice either: a grandchild may have left its group. So the death signal kills the ranks at once.
/// Then the guard kills their process groups, and last all processes that have the launcher's mark in their environment. The guard has its
/// own process group, another name and no mark, so that neither Ctrl-C nor `pkill mpiexec` nor an outer launcher's sweep reaches it.
class OrphanReaper {
  public:
    OrphanReaper() = default;
    OrphanReaper(const OrphanReaper&) = delete;
    OrphanReaper& operator=(const OrphanReaper&) = delete;

    /// Forks the guard. `mark` is the environment entry (NAME=value) of all processes of this launcher; `argv` is main's. Returns false and
    /// sets failure_text() if no process can be started.
    bool start(std::string mark, char** argv);
    /// Forks the guard again after it was killed.
    bool restart();
    pid_t pid() const { return pid_; }

    /// Returns a word that the guard reads: a process group to kill, 0 for none. The starting child stores its own pid there before exec,
    /// so that the guard knows it from its first instant.
    volatile pid_t* acquire_slot();
    void release_slot(volatile pid_t* slot);

    /// Ends the guard after an orderly shutdown. Returns when the guard has ended.
    void dismiss();

  private:
    [[noreturn]] void serve(pid_t launcher, int launcher_fd);

    static constexpr uint32_t kSlots = 1 << 18;
    volatile pid_t* slots_ = nullptr;  ///< process groups to kill, in memory shared with the guard; sparse
    uint32_t used_ = 0;                ///< number of slots ever used
    uint32_t free_[64] = {};           ///< indices of some released slots
    uint32_t free_count_ = 0;
    std::string mark_;
    char** argv_ = nullptr;
    pid_t pid_ = -1;
};

/// Sends SIGKILL to every process of this user whose environment has the entry `mark`, except the caller. Repeats until none is left, since
/// a process may fork during the search. Returns the number of killed processes.
int kill_marked(const std::string& mark);

}  // namespace starling::launch
