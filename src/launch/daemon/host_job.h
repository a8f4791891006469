// `starlingd host`: the helper of a job that another manager has started, on one host. It owns this host's
// segment of the job, is the launcher of whatever the job spawns here, and sees to it that nobody waits for
// the dead.
#pragma once

#include <string>
#include <vector>

#include "bootstrap/host_join.h"
#include "launch/common/event_loop.h"
#include "launch/common/frame_server.h"
#include "launch/universe/local_client.h"

namespace starling::launch {

/// Reads the file at `path` as the description of a job of which `rank` is on this host. False with
/// failure_text().
bool read_description(const char* path, uint32_t rank, job::JobDescription& out, uint32_t& my_host);

/// The process whose file `path`, /proc/PID/fd/FD, is. -1 if it names none.
pid_t owner_of(const char* path);

/// The process that watches over the process `pid` for its manager: its nearest ancestor that is not itself
/// that rank (a wrapper has the same rank in its environment). -1 if there is none.
pid_t manager_of(pid_t pid);

/// Takes the manager's marks out of this process's environment: what the job spawns is no rank of the
/// manager's.
void forget_manager();

class HostJob {
  public:
    HostJob(EventLoop& loop, LocalClient& patron);
    HostJob(const HostJob&) = delete;
    HostJob& operator=(const HostJob&) = delete;
    ~HostJob();

    enum class Start { ready, another_was_faster, failed };
    /// Creates the segment and listens for its ranks, of which `starter` is the first to come. failure_text() if it failed.
    Start start(const job::JobDescription& description, uint32_t my_host, pid_t starter);

  private:
    enum class Where { awaited, here, gone };
    struct Member {
        Where where = Where::awaited;
        int pid_fd = -1;
    };

    Start listen();
    bool on_frame(FrameServer::ConnectionId id, const control::Frame& frame);
    std::string admit(const bootstrap::HostJoin& join, job::JobAddress& job);
    bool watch_starter(pid_t starter);
    void forget_starter();
    void on_starter_gone();
    void watch_manager(pid_t rank);
    void on_exit(uint32_t rank);
    void on_manager_gone();
    void fail_soon(uint32_t rank);
    void end_all(uint32_t failed);
    void end_rest();
    void settle();
    void release();
    bool anybody(Where where) const;
    Member& member(uint32_t rank) { return members_[job_->segment.local_index(rank)]; }

    EventLoop& loop_;
    LocalClient& patron_;
    Launcher& launcher_;
    FrameServer server_;
    Job* job_ = nullptr;  ///< null once the launcher has let go of it
    job::JobId id_ = 0;
    std::vector<Member> members_;
    int starter_fd_ = -1;  ///< until somebody has come
    int manager_fd_ = -1;
    bool manager_known_ = false, manager_gone_ = false;
    bool failing_ = false;
    EventLoop::TimerId turn_ = 0, mercy_ = 0, linger_ = 0;
};

}  // namespace starling::launch
