// `starlingd host`: the helper on one host of a job that another process manager has started. It owns this host's segment of the job, is
// the launcher for the jobs that this job spawns here, and reports dead ranks to the ranks that wait for them.
#pragma once

#include <string>
#include <vector>

#include "bootstrap/host_join.h"
#include "launch/common/event_loop.h"
#include "launch/common/frame_server.h"
#include "launch/universe/local_client.h"

namespace starling::launch {

/// Reads the file at `path` as the description of a job that has `rank` on this host. Returns false and sets failure_text() on failure.
bool read_description(const char* path, uint32_t rank, job::JobDescription& out, uint32_t& my_host);

/// Returns PID if `path` has the form /proc/PID/fd/FD; otherwise -1.
pid_t owner_of(const char* path);

/// Returns the process that monitors process `pid` for the manager: its nearest ancestor that is not itself that rank (a wrapper has the
/// same rank in its environment). Returns -1 if there is none.
pid_t manager_of(pid_t pid);

/// Removes the manager's variables from this process's environment: spawned processes are not ranks of the manager.
void forget_manager();

class HostJob {
  public:
    HostJob(EventLoop& loop, LocalClient& patron);
    HostJob(const HostJob&) = delete;
    HostJob& operator=(const HostJob&) = delete;
    ~HostJob();

    enum class Start { ready, another_was_faster, failed };
    /// Creates the segment and listens for the ranks of this host, of which `starter` will be the first. Sets failure_text() on failure.
    Start start(const job::JobDescription& description, uint32_t my_host, pid_t starter);

  private:
    enum class MemberState { awaited, here, gone };
    struct JobMember {
        MemberState where = MemberState::awaited;
        int pid_fd = -1;
    };

    Start listen();
    bool on_frame(FrameServer::ConnectionId id, const control::ControlFrame& frame);
    std::string admit(const bootstrap::HostJoin& join, job::JobAddress& job);
    bool watch_starter(pid_t starter);
    void forget_starter();
    void on_starter_exit();
    void watch_manager(pid_t rank);
    void on_exit(uint32_t rank);
    void on_manager_exit();
    void fail_soon(uint32_t rank);
    void end_all(uint32_t failed);
    void end_rest();
    void settle();
    void release();
    bool anybody(MemberState where) const;
    JobMember& member(uint32_t rank) { return members_[job_->segment.local_index(rank)]; }

    EventLoop& loop_;
    LocalClient& patron_;
    Launcher& launcher_;
    FrameServer server_;
    LocalJob* job_ = nullptr;  ///< this host's part of the job; null once the launcher has released it
    job::JobId id_ = 0;
    std::vector<JobMember> members_;
    int starter_fd_ = -1;  ///< pidfd of the process that started the helper, watched until the first rank has joined
    int manager_fd_ = -1;
    bool manager_known_ = false, manager_gone_ = false;
    bool failing_ = false;
    EventLoop::TimerId turn_ = 0, mercy_ = 0, linger_ = 0;
};

}  // namespace starling::launch
