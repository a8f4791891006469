// starlingd: the processes that run beside the jobs. `names`: the daemon that stores a user's published names. `serve`: the launcher for a
// program that was started without mpiexec. `host`: the helper of a job that another process manager has started, one per host. `universe`:
// the root of standing daemons. `node`: the daemon on another host. Users start none of them by hand; each starts on demand and ends by
// itself.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <string_view>

#include "base/config.h"
#include "base/error.h"
#include "base/linux_calls.h"
#include "control/start_server.h"
#include "job/environment.h"
#include "job/virtual_host.h"
#include "launch/common/file_text.h"
#include "launch/common/stack_limit.h"
#include "launch/daemon/host_job.h"
#include "launch/daemon/name_daemon.h"
#include "launch/daemon/node_daemon.h"
#include "launch/daemon/standing.h"
#include "launch/tree/node.h"
#include "launch/universe/local_client.h"

namespace {

using namespace starling;

// Reports one line to the process that waits for this daemon, and closes the pipe.
void tell(int fd, std::string_view line) {
    const std::string text = std::string(line) + "\n";
    if (write(fd, text.data(), text.size()) < 0) return;
    close(fd);
}

void close_between(int first, int behind) {
    if (first < behind) syscall(SYS_close_range, static_cast<unsigned>(first), static_cast<unsigned>(behind) - 1, 0u);
}

/// Closes all descriptors except these two and the standard ones. Descriptors inherited from the application must not stay open in the
/// daemon.
void keep_only(int fd, int other) {
    const auto [low, high] = std::minmax(fd, other);
    close_between(3, low);
    close_between(std::max(low + 1, 3), high);
    close_between(high + 1, std::numeric_limits<int>::max());
}

int keep_names(bool persistent, int ready) {
    signal(SIGPIPE, SIG_IGN);
    if (chdir("/") != 0) return 1;
    launch::EventLoop loop;
    launch::NameDaemon daemon(loop, persistent);
    if (!daemon.start()) {
        // EADDRINUSE: another daemon of this user was faster, and serves the waiting process equally well.
        tell(ready, errno == EADDRINUSE ? "ready" : std::strerror(errno));
        return errno == EADDRINUSE ? 0 : 1;
    }
    tell(ready, "ready");
    return loop.run();
}

launch::LauncherSettings settings_of(char** argv) {
    launch::LauncherSettings settings;
    settings.name = "starling";
    settings.argv = argv;
    return settings;
}

int serve(char** argv, const job::JobAddress& address, int ready) {
    launch::EventLoop loop;
    launch::LocalClient patron(loop, settings_of(argv));
    if (!patron.prepare() || !patron.adopt(address)) {
        tell(ready, failure_text());
        patron.launcher().shut_down();
        return 1;
    }
    tell(ready, "ready");
    return patron.run();
}

// Runs the helper of a job that another process manager has started.
int help_host(char** argv, int ready) {
    read_config(false);
    job::JobDescription description;
    uint32_t my_host;
    const auto rank = static_cast<uint32_t>(std::strtoul(argv[2], nullptr, 10));
    if (!launch::read_description(argv[3], rank, description, my_host)) {
        tell(ready, failure_text());
        return 1;
    }
    launch::forget_manager();
    launch::EventLoop loop;
    launch::LocalClient patron(loop, settings_of(argv));
    launch::HostJob job(loop, patron);
    auto outcome = launch::HostJob::Start::failed;
    if (patron.prepare()) outcome = job.start(description, my_host, launch::owner_of(argv[3]));
    const bool faster = outcome == launch::HostJob::Start::another_was_faster;
    tell(ready, outcome == launch::HostJob::Start::failed ? failure_text() : "ready");
    if (outcome == launch::HostJob::Start::ready) {
        patron.run();
        return 0;  // exit code 0, because the job's manager reports how the job ended
    }
    patron.launcher().shut_down();
    return faster ? 0 : 1;
}

// Writes a byte every second, since starting daemons on many hosts takes long. Each step has a time limit; the byte shows the waiting
// process that the start is in progress.
void show_life(launch::EventLoop& loop, const int& ready, launch::StandingRoot& root) {
    if (ready < 0) return;
    if (write(ready, &control::kStillStarting, 1) < 0 && errno == EPIPE) return root.give_up();
    loop.after(std::chrono::seconds(1), [&loop, &ready, &root] { show_life(loop, ready, root); });
}

int keep_universe(char** argv, int ready) {
    read_config(false);
    signal(SIGPIPE, SIG_IGN);
    std::string hosts;  // in a file, since a command line may be too short for them
    if (chdir("/") != 0 || !launch::read_text(argv[2], hosts)) {
        tell(ready, std::string("cannot read the hosts: ") + std::strerror(errno));
        return 1;
    }
    launch::EventLoop loop;
    launch::StandingRoot root(loop, argv, [&](const std::string& line) {
        if (ready >= 0) tell(ready, line);
        ready = -1;
    });
    loop.after(std::chrono::seconds(1), [&] { show_life(loop, ready, root); });
    return root.run(hosts, argv[3]);
}

int usage() {
    std::fprintf(stderr, "starlingd is started by Starling itself; see: starling daemon status\n");
    return 2;
}

}  // namespace

// Not inlined: its frame may be larger than a stack that main() refuses.
[[gnu::noinline]] static int run(int argc, char** argv) {
    const std::string_view first = argc > 1 ? argv[1] : "";
    const bool apart = argc == 4 && std::string_view(argv[2]) == "apart";
    if (first == "node" && (argc == 2 || apart)) {
        if (apart) job::set_host_apart(argv[3]);
        return launch::run_node([argv](launch::EventLoop& loop, launch::Tree& tree) {
            return std::make_shared<launch::NodeDaemon>(loop, tree, argv);
        });
    }
    if (argc < 3) return usage();
    const int ready = std::atoi(argv[argc - 1]);
    if (ready < 3) return usage();
    const std::string_view mode = argv[1];
    job::JobAddress address;
    const bool serves = mode == "serve" && argc == 4 && job::parse_address(argv[2], address);
    // The application may have passed its segment under this descriptor number. Any other descriptor with this number was closed by exec.
    keep_only(ready, serves ? address.owner_fd : ready);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    if (mode == "names" && argc == 3) return keep_names(false, ready);
    if (mode == "names-persistent" && argc == 3) return keep_names(true, ready);
    if (serves) return serve(argv, address, ready);
    if (mode == "universe" && argc == 5) return keep_universe(argv, ready);
    if (mode == "host" && argc == 5) return help_host(argv, ready);
    return usage();
}

int main(int argc, char** argv) {
    if (const std::string problem = launch::stack_problem(); !problem.empty()) {
        std::fprintf(stderr, "starlingd: %s\n", problem.c_str());
        return 1;
    }
    return run(argc, argv);
}
