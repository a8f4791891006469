#include "launch/universe/local_patron.h"

#include <unistd.h>

#include <csignal>

#include "launch/process/output.h"

namespace starling::launch {

LocalPatron::LocalPatron(EventLoop& loop, const LauncherSettings& settings, std::optional<TreeSettings> tree)
    : loop_(loop), launcher_(loop, settings), universe_(loop, launcher_, std::move(tree)) {
    verbose = settings.verbose;
    quiet = settings.quiet;
    has_own_host = true;
    launcher_.on_signal = [this](int signal) { on_signal(signal); };
    universe_.on_say = [this](const std::string& sentence) { say(sentence); };
}

bool LocalPatron::adopt(const job::JobAddress& address) {
    const Job* job = launcher_.adopt(address);
    if (job) universe_.adopt(*job, *this);
    return job != nullptr;
}

Job& LocalPatron::adopt(job::JobSegment&& segment) {
    Job& job = launcher_.adopt(std::move(segment));
    universe_.adopt(job, *this);
    return job;
}

void LocalPatron::output(int target, std::string_view lines, std::function<void()> written) {
    launcher_.output().write_lines(target, lines, std::move(written));
}

void LocalPatron::on_signal(int signal) {
    universe_.signal(*this, signal);
    if (signal == SIGTSTP) kill(getpid(), SIGSTOP);
}

}  // namespace starling::launch
