#include "launch/daemon/host_job.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/linux_calls.h"
#include "base/process.h"
#include "base/version.h"
#include "base/wire.h"
#include "launch/common/file_text.h"
#include "launch/common/host_facts.h"
#include "launch/process/output.h"
#include "mpi.h"

namespace starling::launch {

namespace {

/// Time that the manager has to end the job in its own way after a rank has died.
constexpr std::chrono::milliseconds kManagersTurn{1000};
/// Time between SIGTERM and SIGKILL.
constexpr std::chrono::milliseconds kHostMercy{250};
/// Time to wait for announced ranks that have not joined yet, while no other rank is on this host.
constexpr std::chrono::seconds kLinger{60};
constexpr int kMostWrappers = 32;

int open_process(pid_t pid) { return static_cast<int>(syscall(SYS_pidfd_open, pid, 0)); }

void signal_process(int pid_fd, int signal) { syscall(SYS_pidfd_send_signal, pid_fd, signal, nullptr, 0); }

/// Returns the variables that identify a rank in a process's environment; empty if it is not a rank, or not readable for us.
std::string rank_marks(pid_t pid) {
    const std::string environment = text_of_file("/proc/" + std::to_string(find_shown_id(pid)) + "/environ");
    std::string marks;
    for (size_t at = 0; at < environment.size();) {
        const size_t end = std::min(environment.find('\0', at), environment.size());
        const std::string_view entry = std::string_view(environment).substr(at, end - at);
        for (const char* name : {"PMI_FD=", "PMI_RANK=", "PMIX_NAMESPACE=", "PMIX_RANK="})
            if (entry.starts_with(name)) marks += std::string(entry) + ";";
        at = end + 1;
    }
    return marks;
}

pid_t parent_of(pid_t pid) {
    const std::string stat = text_of_file("/proc/" + std::to_string(pid) + "/stat");
    const size_t name_end = stat.rfind(')');
    int parent = -1;
    if (name_end == std::string::npos || std::sscanf(stat.c_str() + name_end, ") %*c %d", &parent) != 1) return -1;
    return parent;
}

/// Cancels the Slurm step: Slurm does not end the other tasks of a step when one dies.
void cancel_slurm_step() {
    const char *job = std::getenv("SLURM_JOB_ID"), *step = std::getenv("SLURM_STEP_ID");
    if (!job || !step) return;
    const std::string name = std::string(job) + "." + step;
    if (fork() == 0) {
        execlp("scancel", "scancel", "--quiet", name.c_str(), nullptr);
        _exit(127);
    }
}

/// Closes the inherited output, since a manager may wait until no process can write to it. The helper needs it only for jobs that this job
/// spawns, and no rank is left here that could spawn one.
void drop_output(OutputTagger& output) {
    const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    for (const int fd : {1, 2}) dup2(null, fd);
    close(null);
    output.reopen();
}

}  // namespace

bool read_description(const char* path, uint32_t rank, job::JobDescription& out, uint32_t& my_host) {
    std::string bytes;
    if (!read_text(path, bytes)) {
        fail(MPI_ERR_OTHER, "cannot read %s: %s", path, std::strerror(errno));
        return false;
    }
    my_host = job::kNoHost;
    if (decode(bytes, out)) {
        for (const job::Placement& run : out.placements) {
            uint32_t index;
            if (run.holds(rank, index)) my_host = run.host;
        }
    }
    if (my_host != job::kNoHost) return true;
    fail(MPI_ERR_OTHER,
         "the job description of the first process is invalid; use the starlingd and the library of one "
         "installation");
    return false;
}

pid_t owner_of(const char* path) {
    int pid = -1;
    return std::sscanf(path, "/proc/%d/", &pid) == 1 ? pid : -1;
}

pid_t manager_of(pid_t pid) {
    const std::string marks = rank_marks(pid);
    for (int i = 0; i < kMostWrappers; ++i) {
        pid = parent_of(pid);
        if (pid <= 1) return -1;
        if (marks.empty() || rank_marks(pid) != marks) return pid;
    }
    return -1;
}

void forget_manager() {
    std::vector<std::string> names;
    for (char** entry = environ; *entry; ++entry) {
        const std::string_view name = std::string_view(*entry).substr(0, std::strcspn(*entry, "="));
        if (name.starts_with("PMI_") || name.starts_with("PMIX_")) names.emplace_back(name);
    }
    for (const std::string& name : names) unsetenv(name.c_str());
}

HostJob::HostJob(EventLoop& loop, LocalClient& patron)
    : loop_(loop),
      patron_(patron),
      launcher_(patron.launcher()),
      server_(
          loop, [this](auto id, const control::ControlFrame& frame) { return on_frame(id, frame); }, [](auto) {}) {}

HostJob::~HostJob() {
    for (const JobMember& member : members_)
        if (member.pid_fd >= 0) close(member.pid_fd);
    for (const int fd : {starter_fd_, manager_fd_})
        if (fd >= 0) close(fd);
}

HostJob::Start HostJob::listen() {
    if (server_.listen_at(bootstrap::host_meeting(id_))) return Start::ready;
    if (errno == EADDRINUSE) return Start::another_was_faster;
    fail(MPI_ERR_OTHER, "cannot listen for the job's processes: %s%s", std::strerror(errno), limit_remedy(errno));
    return Start::failed;
}

HostJob::Start HostJob::start(const job::JobDescription& description, uint32_t my_host, pid_t starter) {
    id_ = description.id;
    if (!watch_starter(starter)) return Start::failed;
    if (const Start outcome = listen(); outcome != Start::ready) return outcome;
    job::JobDescription mine = description;
    if (mine.several_hosts) {
        job::HostEntry& entry = mine.hosts[my_host];
        const job::HostEntry own = own_facts().entry;
        entry.addresses = own.addresses;
        std::copy(own.ipv4, own.ipv4 + own.kMost, entry.ipv4);
    }
    job::JobSegment segment;
    if (job::JobSegment::create(mine, my_host, segment) != MPI_SUCCESS) return Start::failed;
    members_.resize(segment.header().local_ranks);
    job_ = &patron_.adopt(std::move(segment));
    settle();
    return Start::ready;
}

bool HostJob::on_frame(FrameServer::ConnectionId id, const control::ControlFrame& frame) {
    bootstrap::HostJoin join;
    bootstrap::HostWelcome welcome;
    if (frame.kind != control::MessageKind::hello) return false;
    if (!job_ && !manager_known_) return false;  // The job has ended here, so this rank must join through a new helper.
    // A rank of another version may encode all fields but the first differently.
    const auto version = Reader(frame.payload).number<uint32_t>();
    if (!understands(version))
        welcome.refusal =
            "the ranks of this job run different versions of Starling: the library of this one has wire version " +
            std::to_string(version >> 16) + "." + std::to_string(version & 0xffff) +
            ", that of the first rank on this host has " + version_text() + "; " + kVersionRemedy;
    else if (!decode(frame.payload, join))
        return false;
    else
        welcome.refusal = admit(join, welcome.job);
    server_.send(id, control::MessageKind::reply, encode(welcome));
    return true;
}

// Admits a rank. `job` is set to the address of its job, also if another process has already joined as that rank. Returns an empty string,
// or the refusal.
std::string HostJob::admit(const bootstrap::HostJoin& join, job::JobAddress& job) {
    const std::string who = "rank " + std::to_string(join.rank);
    if (!job_) return who + " called MPI_Init after its job had ended";
    if (join.job != id_ || join.size != job_->segment.header().size) return "another job has the same name on this host";
    if (join.rank >= join.size || !job_->segment.is_local(join.rank))
        return who + " is on another host, according to the information that the process manager gave the first rank here";
    if (job_->failing) return who + " called MPI_Init after its job had failed";
    JobMember& record = member(join.rank);
    if (record.where != MemberState::awaited) {
        job = job_->segment.address();
        return who + " has called MPI_Init already, in another process that was started as the same rank";
    }
    record.pid_fd = open_process(join.pid);
    if (record.pid_fd < 0) return "cannot watch process " + std::to_string(join.pid) + ", " + who + ": " + std::strerror(errno);
    const uint32_t rank = join.rank;
    loop_.watch(record.pid_fd, EPOLLIN, [this, rank](uint32_t) { on_exit(rank); });
    record.where = MemberState::here;
    job_->segment.cell(rank).pid.store(join.pid, std::memory_order_relaxed);
    job_->segment.cell(rank).appnum = static_cast<int32_t>(join.appnum);
    if (linger_ != 0) loop_.cancel(std::exchange(linger_, 0));
    forget_starter();
    if (!manager_known_) watch_manager(join.pid);
    job = job_->segment.address();
    return {};
}

// Watches the process that started this helper. Until the first rank has joined, the inherited output belongs to the starter, and its
// manager may wait for the output's end.
bool HostJob::watch_starter(pid_t starter) {
    starter_fd_ = open_process(starter);
    if (starter_fd_ < 0) {
        fail(MPI_ERR_OTHER, "cannot watch process %d, which has started the helper of its job: %s", starter,
             std::strerror(errno));
        return false;
    }
    loop_.watch(starter_fd_, EPOLLIN, [this](uint32_t) { on_starter_exit(); });
    return true;
}

void HostJob::forget_starter() {
    if (starter_fd_ < 0) return;
    loop_.forget(starter_fd_);
    close(std::exchange(starter_fd_, -1));
}

// Ends the helper, because no rank has joined. The next process starts another helper with an output of its own.
void HostJob::on_starter_exit() {
    forget_starter();
    if (job_) release();
}

void HostJob::watch_manager(pid_t rank) {
    manager_known_ = true;
    const pid_t manager = manager_of(rank);
    if (manager > 1) manager_fd_ = open_process(manager);
    if (manager_fd_ < 0) return;
    loop_.watch(manager_fd_, EPOLLIN, [this](uint32_t) { on_manager_exit(); });
}

bool HostJob::anybody(MemberState where) const {
    return std::any_of(members_.begin(), members_.end(), [&](const JobMember& m) { return m.where == where; });
}

void HostJob::on_exit(uint32_t rank) {
    JobMember& record = member(rank);
    loop_.forget(record.pid_fd);
    close(std::exchange(record.pid_fd, -1));
    record.where = MemberState::gone;
    const job::RankCell& cell = job_->segment.cell(rank);
    const bool failed = cell.state.load(std::memory_order_acquire) != job::RankState::finalized ||
                        cell.aborted.load(std::memory_order_acquire) != 0;
    launcher_.external_exit(*job_, rank, failed);
    if (failed) fail_soon(rank);
    settle();
}

// Ends all ranks after a delay, so that their manager can end them first. The job is marked as failed at once, which the ranks here can
// read in the segment.
void HostJob::fail_soon(uint32_t rank) {
    if (std::exchange(failing_, true)) return;
    turn_ = loop_.after(kManagersTurn, [this, rank] {
        turn_ = 0;
        end_all(rank);
        settle();
    });
}

void HostJob::on_manager_exit() {
    loop_.forget(manager_fd_);
    manager_gone_ = true;
    for (uint32_t i = 0; i < members_.size() && !failing_; ++i) {
        if (members_[i].where != MemberState::here) continue;
        const uint32_t rank = job_->segment.local_rank(i);
        launcher_.print("the process manager of job %s has ended; ending the job's processes on this host",
                        job_->segment.header().command);
        launcher_.fail_external(*job_);
        fail_soon(rank);
    }
    settle();
}

void HostJob::end_all(uint32_t failed) {
    const auto left = std::count_if(members_.begin(), members_.end(),
                                    [](const JobMember& member) { return member.where == MemberState::here; });
    if (left > 0 && !manager_gone_) {
        launcher_.print("rank %u (%s) has died without MPI_Finalize; ending the job's other processes on this host (%ld)",
                        failed, job_->segment.header().command, static_cast<long>(left));
    }
    if (left > 0 || job_->segment.header().hosts > 1) cancel_slurm_step();
    end_rest();
}

void HostJob::end_rest() {
    for (const JobMember& member : members_)
        if (member.where == MemberState::here) signal_process(member.pid_fd, SIGTERM);
    mercy_ = loop_.after(kHostMercy, [this] {
        mercy_ = 0;
        for (const JobMember& member : members_)
            if (member.where == MemberState::here) signal_process(member.pid_fd, SIGKILL);
        settle();
    });
}

// Ends the helper once no rank needs it any more.
void HostJob::settle() {
    if (!job_ || turn_ != 0 || anybody(MemberState::here)) return;
    const bool no_manager = !manager_known_;
    if (anybody(MemberState::awaited) && !failing_ && !manager_gone_) {
        if (linger_ != 0) return;
        if (!no_manager) drop_output(launcher_.output());
        linger_ = loop_.after(kLinger, [this] { release(); });
        return;
    }
    release();
}

void HostJob::release() {
    for (EventLoop::TimerId* timer : {&linger_, &mercy_})
        if (*timer != 0) loop_.cancel(std::exchange(*timer, 0));
    launcher_.release(*std::exchange(job_, nullptr));
}

}  // namespace starling::launch
