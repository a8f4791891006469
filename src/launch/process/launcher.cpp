#include "launch/process/launcher.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "base/config.h"
#include "base/error.h"
#include "base/linux_calls.h"
#include "base/process.h"
#include "job/environment.h"
#include "launch/common/signals.h"
#include "launch/process/control_server.h"
#include "launch/process/hang_report.h"
#include "launch/process/input.h"
#include "launch/process/output.h"
#include "mpi.h"

namespace starling::launch {

Launcher::Launcher(EventLoop& loop, const LauncherSettings& settings) : loop_(loop), settings_(settings) {}

Launcher::~Launcher() {
    if (signal_fd_ >= 0) close(signal_fd_);
    if (null_input_ >= 0) close(null_input_);
}

void Launcher::print(const char* format, ...) {
    if (settings_.quiet) return;
    char text[2048];
    int length = std::snprintf(text, sizeof text, "%s: ", settings_.name);
    va_list arguments;
    va_start(arguments, format);
    length += std::vsnprintf(text + length, sizeof text - static_cast<size_t>(length) - 1, format, arguments);
    va_end(arguments);
    length = std::min<int>(length, sizeof text - 2);
    if (on_print) return on_print(std::string(text, static_cast<size_t>(length)));
    text[length++] = '\n';
    output().write_lines(2, std::string_view(text, static_cast<size_t>(length)), {});
}

void Launcher::print_all(std::string_view text) {
    if (settings_.quiet) return;
    output().write_lines(2, std::string(settings_.name) + ": " + std::string(text), {});
}

void Launcher::detail(const char* format, ...) {
    if (!settings_.verbose) return;
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    print("%s", text);
}

bool Launcher::prepare() {
    signal(SIGPIPE, SIG_IGN);
    if (!watch_signals()) return false;
    // Pipes and segments need descriptors. The ranks start with the user's limit again.
    if (getrlimit(RLIMIT_NOFILE, &original_descriptors_) == 0) {
        rlimit generous = original_descriptors_;
        generous.rlim_cur = generous.rlim_max;
        descriptors_raised_ = setrlimit(RLIMIT_NOFILE, &generous) == 0;
    }
    uint64_t random = 0;
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    random = static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
    char name[64];
    std::snprintf(name, sizeof name, "starling-%u-%d-%llx", geteuid(), getpid(), static_cast<unsigned long long>(random));
    mark_ = job::kLauncherVariable;
    mark_.append("=").append(name);
    request_short_slices();  // wakes this process sooner: ranks wait for its news, such as the death of a rank
    if (!guard_.start(mark_, settings_.argv)) return false;
    control_ = std::make_unique<ControlServer>(*this);
    return control_->start(name);
}

bool Launcher::watch_signals() {
    // The parent may have set SIGCHLD to be ignored, which is inherited; then the kernel would reap the ranks itself.
    signal(SIGCHLD, SIG_DFL);
    sigset_t watched = forwarded_signals();
    sigaddset(&watched, SIGCHLD);
    sigprocmask(SIG_BLOCK, &watched, &original_mask_);
    signal_fd_ = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signal_fd_ < 0) {
        fail(MPI_ERR_OTHER, "cannot watch signals: %s%s", std::strerror(errno), limit_remedy(errno));
        return false;
    }
    if (loop_.watch(signal_fd_, EPOLLIN, [this](uint32_t) { on_signals(); })) return true;
    fail(MPI_ERR_OTHER, "cannot watch signals: epoll_ctl: %s; allow this system call", std::strerror(errno));
    return false;
}

void Launcher::on_signals() {
    signalfd_siginfo info;
    bool children = false;
    while (::read(signal_fd_, &info, sizeof info) == sizeof info) {
        const int signal = static_cast<int>(info.ssi_signo);
        if (signal == SIGCHLD) {
            children = true;
        } else if (on_signal) {
            on_signal(signal);
        }
    }
    if (children) reap();
}

LocalJob* Launcher::find_job(job::JobId id) {
    const auto found = std::find_if(jobs_.begin(), jobs_.end(), [id](const LocalJob& job) { return job.id() == id; });
    return found == jobs_.end() ? nullptr : &*found;
}

bool Launcher::find_segment(job::JobId id, job::JobAddress& out) const {
    for (const LocalJob& job : jobs_) {
        if (job.id() != id) continue;
        out = job.segment.address();
        return true;
    }
    for (const job::JobSegment& segment : ended_) {
        if (segment.header().id != id) continue;
        out = segment.address();
        return true;
    }
    return false;
}

OutputTagger& Launcher::output() {
    if (!output_) {
        output_ = std::make_unique<OutputTagger>(loop_, settings_.quiet ? "" : settings_.name);
        output_->on_problem = [this](const std::string& sentence) { print("%s", sentence.c_str()); };
    }
    return *output_;
}

// Takes the segment from an inherited descriptor. A process whose /proc is closed passes its segment to this process under the same
// descriptor number (control/start_server.cpp).
static bool open_inherited(const job::JobAddress& address, job::JobSegment& out) {
    const bool is_memory = fcntl(address.owner_fd, F_GET_SEALS) >= 0;
    const int own = is_memory ? fcntl(address.owner_fd, F_DUPFD_CLOEXEC, 0) : -1;
    if (own < 0 || job::JobSegment::adopt_descriptor(own, address, out) != MPI_SUCCESS) return false;
    close(address.owner_fd);
    return true;
}

LocalJob* Launcher::adopt(const job::JobAddress& address) {
    job::JobSegment segment;
    if (!open_inherited(address, segment) && job::JobSegment::open(address, segment) != MPI_SUCCESS) return nullptr;
    const int pid_fd = static_cast<int>(syscall(SYS_pidfd_open, address.owner_pid, 0));
    if (pid_fd < 0) {
        fail(MPI_ERR_OTHER, "cannot watch process %d: %s", address.owner_pid, std::strerror(errno));
        return nullptr;
    }
    LocalJob& job = adopt(std::move(segment));
    loop_.watch(pid_fd, EPOLLIN, [this, pid_fd, &job](uint32_t) { on_external_exit(job, pid_fd); });
    return &job;
}

LocalJob& Launcher::adopt(job::JobSegment&& segment) {
    LocalJob& job = jobs_.emplace_back();
    job.segment = std::move(segment);
    job::JobHeader& header = job.segment.header();
    job.external = true;
    job.running = 1;  // 1 for the process that adopted the job
    job.ranks.resize(header.local_ranks);
    job.programs.push_back(header.command);
    std::snprintf(header.control_socket, sizeof header.control_socket, "%s", control_->name().c_str());
    return job;
}

int Launcher::run() {
    if (config().hang_report > 0)
        report_when_hanging(loop_, *this, config().hang_report, [this](const std::string& text) { print_all(text); });
    const int code = loop_.run();
    if (output_) output_->drain();
    control_.reset();
    guard_.dismiss();
    return code == 0 && output_ ? output_->exit_code() : code;
}

}  // namespace starling::launch
