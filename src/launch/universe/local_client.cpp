#include "launch/universe/local_client.h"

#include <unistd.h>

#include <csignal>
#include <memory>
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

void LocalClient::announce_suspension(std::function<void()> then) {
    constexpr std::chrono::seconds kLongest{3};  // limit, in case a host does not answer
    const auto called = std::make_shared<bool>(false);
    const auto once = [then = std::move(then), called] {
        if (!std::exchange(*called, true)) then();
    };
    universe_.suspend(once);
    if (!*called) loop_.after(kLongest, once);
}

void LocalClient::suspend() {
    if (suspending_) return;
    suspending_ = true;
    announce_suspension([this, which = ++suspensions_] {
        if (which == suspensions_ && std::exchange(suspending_, false)) kill(getpid(), SIGSTOP);
    });
}

}  // namespace starling::launch
