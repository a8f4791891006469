// lab-hosts: creates a lab's hosts, their switch and its cables, and keeps them until it gets a signal or is killed. Its child processes
// hold all resources and end with it. Only the state directory can remain; the next `lab down` or `lab up` of that name removes it.
//
// lab-hosts --state DIR --hosts N [--rails R] [--mtu BYTES] [--shared-tmp] [--tied]
//
// Prints "ready" when everything is up. --tied: ends when its standard input closes. DIR/pids lists the process ids of the supervisor, the
// switch, lab1 and so on, one per line; DIR/lock is locked while it runs.
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include "frames.h"
#include "host.h"
#include "problem.h"

using namespace starling::lab;

namespace {

constexpr int most_hosts = 250;
constexpr int most_with_arp = 16;

struct Arguments {
    Plan plan;
    bool tied = false;
};

Arguments parse(int argc, char** argv) {
    Arguments result;
    for (int i = 1; i < argc; ++i) {
        std::string word = argv[i];
        const char* value = i + 1 < argc ? argv[i + 1] : "";
        if (word == "--state")
            result.plan.state = value, ++i;
        else if (word == "--hosts")
            result.plan.hosts = std::atoi(value), ++i;
        else if (word == "--rails")
            result.plan.rails = std::atoi(value), ++i;
        else if (word == "--mtu")
            result.plan.mtu = std::atoi(value), ++i;
        else if (word == "--shared-tmp")
            result.plan.shared_tmp = true;
        else if (word == "--tied")
            result.tied = true;
        else
            errno = EINVAL, die(word.c_str());
    }
    Plan& plan = result.plan;
    bool sound = plan.hosts >= 1 && plan.hosts <= most_hosts && plan.rails >= 1 && plan.rails <= 8;
    if (!sound || plan.state.empty())
        errno = ERANGE, die("the arguments must give 1 to 250 hosts, 1 to 8 rails and a state directory");
    plan.fixed_neighbours = plan.hosts > most_with_arp;
    return result;
}

void write_file(const std::string& path, const std::string& text) {
    int fd = must(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644), path.c_str());
    if (!write_all(fd, text.data(), text.size())) die(path.c_str());
    close(fd);
}

void prepare_state(const Plan& plan) {
    must(open((plan.state + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644), "lock");
    must(mkdir((plan.state + "/shared").c_str(), 0777), "shared directory");
    std::string names = "127.0.0.1 localhost\n";
    for (int rail = 0; rail < plan.rails; ++rail)
        for (int host = 1; host <= plan.hosts; ++host) {
            std::string name = "lab" + std::to_string(host);
            names += address_of(host, rail) + " " + name + (rail ? "-rail" + std::to_string(rail) : "") + "\n";
        }
    write_file(plan.state + "/hosts", names);
    // A lab has no name server: unknown names must fail at once.
    write_file(plan.state + "/resolv.conf", "");
    write_file(plan.state + "/nsswitch.conf", "passwd: files\ngroup: files\nshadow: files\nhosts: files\n");
}

int lock_state(const std::string& state) {
    int fd = must(open((state + "/lock").c_str(), O_RDWR | O_CLOEXEC), "lock");
    must(flock(fd, LOCK_EX | LOCK_NB), "another lab of this name");
    return fd;
}

std::vector<Host> start_all(const Plan& plan) {
    std::vector<Host> hosts;
    for (int i = 0; i <= plan.hosts; ++i) hosts.push_back(start_host(plan, i));
    return hosts;
}

// Returns the commands for `ip -batch` that create bridges and a cable from each bridge to each host. The bridges have IGMP snooping and a
// querier; without a querier a bridge floods.
std::string cabling(const Plan& plan, const std::vector<Host>& hosts) {
    std::string text, mtu = std::to_string(plan.mtu);
    for (int rail = 0; rail < plan.rails; ++rail) {
        std::string r = std::to_string(rail);
        // A new querier first waits for others, as long as replies to queries may take, and the bridge floods meanwhile. Here it waits for
        // 0.1 s.
        text += "link add bridge" + r + " mtu " + mtu + " type bridge stp_state 0 mcast_snooping 1" +
                " mcast_query_response_interval 10\n";
        text += "link set bridge" + r + " type bridge mcast_querier 1\n";
        text += "link set bridge" + r + " up\n";
        for (int i = 1; i <= plan.hosts; ++i) {
            char hardware[32];
            std::snprintf(hardware, sizeof hardware, "02:77:00:00:%02x:%02x", rail, i);
            std::string port = "h" + std::to_string(i) + "r" + r;
            text += "link add " + port + " mtu " + mtu + " type veth peer name rail" + r + " address " + hardware + " mtu " +
                    mtu + " netns " + std::to_string(hosts[static_cast<size_t>(i)].pid) + "\n";
            text += "link set " + port + " master bridge" + r + " up\n";
        }
    }
    return text;
}

void lay_cables(const Plan& plan, const std::vector<Host>& hosts) {
    std::string file = plan.state + "/cabling", network = "/proc/" + std::to_string(hosts[0].pid) + "/ns/net";
    write_file(file, cabling(plan, hosts));
    pid_t pid = must(fork(), "process for cables");
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        int fd = must(open(network.c_str(), O_RDONLY | O_CLOEXEC), "the switch");
        must(setns(fd, CLONE_NEWNET), "the switch");
        dup2(STDERR_FILENO, STDOUT_FILENO);
        execlp("ip", "ip", "-batch", file.c_str(), nullptr);
        die("cannot run ip (package iproute2)");
    }
    int status = 0;
    waitpid(pid, &status, 0);
    if (status != 0) errno = EIO, die("ip cannot create the cables to the hosts");
}

void bring_up(const Plan& plan, const std::vector<Host>& hosts) {
    char byte = 'g';
    for (const Host& host : hosts) write_all(host.go, &byte, 1);
    for (const Host& host : hosts)
        if (!read_all(host.ready, &byte, 1)) errno = ECHILD, die("a host did not start");
    std::string pids = std::to_string(getpid()) + "\n";
    for (const Host& host : hosts) pids += std::to_string(host.pid) + "\n";
    write_file(plan.state + "/pids", pids);
}

// Returns when the lab must end. Hosts that die meanwhile (killed by a test) are only reaped.
void keep(int signals, bool tied) {
    pollfd waits[2] = {{signals, POLLIN, 0}, {tied ? STDIN_FILENO : -1, POLLIN, 0}};
    while (true) {
        if (poll(waits, 2, -1) < 0) continue;
        char byte;
        if (waits[1].revents && read(STDIN_FILENO, &byte, 1) <= 0) return;
        signalfd_siginfo told;
        if (!waits[0].revents || read(signals, &told, sizeof told) <= 0) continue;
        if (told.ssi_signo != SIGCHLD) return;
        while (waitpid(-1, nullptr, WNOHANG) > 0) {}
    }
}

void tear_down(const Plan& plan, const std::vector<Host>& hosts) {
    for (const Host& host : hosts) kill(host.pid, SIGKILL);
    while (waitpid(-1, nullptr, 0) > 0 || errno == EINTR) {}
    std::error_code ignored;
    std::filesystem::remove_all(plan.state, ignored);
}

int block_signals() {
    sigset_t mask;
    sigemptyset(&mask);
    for (int number : {SIGTERM, SIGINT, SIGHUP, SIGCHLD}) sigaddset(&mask, number);
    sigprocmask(SIG_BLOCK, &mask, nullptr);
    return must(signalfd(-1, &mask, SFD_CLOEXEC), "signalfd");
}

}  // namespace

int main(int argc, char** argv) {
    Arguments arguments = parse(argc, argv);
    const Plan& plan = arguments.plan;
    setsid();
    prctl(PR_SET_NAME, "lab-hosts");
    prepare_state(plan);
    int lock = lock_state(plan.state);
    std::vector<Host> hosts = start_all(plan);
    lay_cables(plan, hosts);
    bring_up(plan, hosts);
    int signals = block_signals();
    must(static_cast<int>(write(STDOUT_FILENO, "ready\n", 6)), "standard output");
    if (!arguments.tied) {
        int null = must(open("/dev/null", O_RDWR | O_CLOEXEC), "/dev/null");
        for (int fd : {0, 1, 2}) dup2(null, fd);
    }
    keep(signals, arguments.tied);
    tear_down(plan, hosts);
    close(lock);
    return 0;
}
