#include "launch/common/signals.h"

namespace starling::launch {

namespace {

constexpr int kForwarded[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT};

bool is_ignored(int signal) {
    struct sigaction now;
    return sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

}  // namespace

sigset_t forwarded_signals() {
    sigset_t all;
    sigemptyset(&all);
    for (const int signal : kForwarded)
        if (signal != SIGHUP || !is_ignored(signal)) sigaddset(&all, signal);
    return all;
}

void heed_all_signals() {
    for (const int number : kForwarded) signal(number, SIG_DFL);
}

}  // namespace starling::launch
