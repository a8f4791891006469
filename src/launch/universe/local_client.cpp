#include "launch/universe/local_client.h"

#include <unistd.h>

#include <csignal>
#include <utility>

#include "launch/process/output.h"

namespace starling::launch {

LocalClient::LocalClient(EventLoop& loop, const LauncherSettings& settings, std::optional<TreeSettings> tree)
    : loop_(loop), launcher_(loop, settings), universe_(loop, launcher_, std::move(tree)) {
    verbose = settings.verbose;
    quiet = settings.quiet;
    has_own_host = true;
    launcher_.on_signal = [this](int signal) { on_signal(signal); };
    universe_.on_print = [this](const std::string& sentence) { print(sentence); };
}

bool LocalClient::adopt(const job::JobAddress& address) {
    const LocalJob* job = launcher_.adopt(address);
    if (job) universe_.adopt(*job, *this);
    return job != nullptr;
}

LocalJob& LocalClient::adopt(job::JobSegment&& segment) {
    LocalJob& job = launcher_.adopt(std::move(segment));
    universe_.adopt(job, *this);
    return job;
}

void LocalClient::output(int target, std::string_view lines, std::function<void()> written) {
    launcher_.output().write_lines(target, lines, std::move(written));
}

void LocalClient::on_signal(int signal) {
    universe_.signal(*this, signal);
    if (signal == SIGTSTP) suspend();
    if (signal == SIGCONT) {
        suspending_ = false;
        universe_.resume();
    }
}

// Stops this process, but only after all other hosts are notified. Otherwise the signal for their ranks would not be sent, and they would
// treat this process as dead.
void LocalClient::suspend() {
    constexpr std::chrono::seconds kLongest{3};  // limit, in case a host does not answer
    if (suspending_) return;
    suspending_ = true;
    const auto stop = [this, which = ++suspensions_] {
        if (which == suspensions_ && std::exchange(suspending_, false)) kill(getpid(), SIGSTOP);
    };
    universe_.suspend(stop);
    if (suspending_) loop_.after(kLongest, stop);
}

}  // namespace starling::launch
