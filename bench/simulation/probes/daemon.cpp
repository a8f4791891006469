// Measures the cost of a daemon's work: processor time, in seconds, of the code that daemons run. Prints JSON.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include "job/job_segment.h"
#include "launch/common/order.h"
#include "launch/tree/frame.h"
#include "launch/tree/handshake.h"
#include "launch/universe/placement.h"
#include "mpi.h"

namespace {

using namespace starling;
using namespace starling::launch;

[[noreturn]] void give_up(const char* what) {
    std::perror(what);
    std::exit(1);
}

double processor_time() {
    timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

template <class F>
double time_of(int repeats, F&& work) {
    work();
    const double before = processor_time();
    for (int i = 0; i < repeats; ++i) work();
    return (processor_time() - before) / repeats;
}

sockaddr_in loopback(uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

int listen_anywhere(sockaddr_in& address) {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    address = loopback(0);
    socklen_t length = sizeof address;
    if (fd < 0 || bind(fd, reinterpret_cast<sockaddr*>(&address), length) != 0 || listen(fd, 64) != 0 ||
        getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0)
        give_up("listen");
    return fd;
}

int connect_to(const sockaddr_in& address) {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) give_up("connect");
    const int yes = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    return fd;
}

/// Measures a handshake of this process with itself; one end's cost is half of the time.
double handshake() {
    const TreeKey key = make_key();
    sockaddr_in address;
    const int listener = listen_anywhere(address);
    const double both = time_of(500, [&] {
        const int child_fd = connect_to(address);
        const int parent_fd = accept(listener, nullptr, nullptr);
        Handshake child(Handshake::HandshakeRole::child, key), parent(Handshake::HandshakeRole::parent, key);
        std::string to_parent = child.opening(), to_child;
        for (int i = 0; i < 4 && (!to_parent.empty() || !to_child.empty()); ++i) {
            std::string_view bytes = to_parent;
            std::string out;
            char buffer[256];
            if (write(child_fd, bytes.data(), bytes.size()) < 0 || read(parent_fd, buffer, sizeof buffer) < 0) give_up("write");
            parent.feed(bytes, out);
            bytes = out;
            to_parent.clear();
            if (!out.empty() && (write(parent_fd, out.data(), out.size()) < 0 || read(child_fd, buffer, sizeof buffer) < 0))
                give_up("write");
            child.feed(bytes, to_parent);
        }
        FrameSealer sealer(child.key_to_send());
        FrameOpener opener(child.key_to_receive());
        close(child_fd);
        close(parent_fd);
    });
    close(listener);
    return both / 2;
}

/// Runs one end of an exchange of sealed frames, as a daemon does: waits with epoll, reads, checks, answers.
void exchange(int fd, bool first, int rounds, size_t bytes) {
    const FrameKey key{};
    FrameSealer sealer(key);
    FrameOpener opener(key);
    const std::string body(bytes, 'x');
    const int epoll = epoll_create1(0);
    epoll_event wanted{EPOLLIN, {}};
    epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &wanted);
    static char buffer[64 << 10];
    for (int round = 0; round < rounds; ++round) {
        if (!first || round > 0) {
            TreeFrameKind kind;
            std::string got;
            for (bool whole = false; !whole;) {
                epoll_event event;
                if (epoll_wait(epoll, &event, 1, -1) < 1) continue;
                const ssize_t n = read(fd, buffer, sizeof buffer);
                if (n <= 0) give_up("read");
                std::string_view rest(buffer, static_cast<size_t>(n));
                whole = opener.feed(rest, kind, got) == FrameOpener::FrameOpenResult::frame;
            }
        }
        if (!first && round + 1 == rounds) break;  // the last answer need not be read
        const std::string frame = sealer.seal(TreeFrameKind::message, body);
        for (size_t at = 0; at < frame.size();) {
            const ssize_t n = write(fd, frame.data() + at, frame.size() - at);
            if (n < 0) give_up("write");
            at += static_cast<size_t>(n);
        }
    }
    close(epoll);
}

/// Returns one end's processor time for sending one frame and receiving one, divided by two.
double frame(int rounds, size_t bytes) {
    sockaddr_in address;
    const int listener = listen_anywhere(address);
    const pid_t other = fork();
    if (other == 0) {
        exchange(connect_to(address), true, rounds, bytes);
        _exit(0);
    }
    const int fd = accept(listener, nullptr, nullptr);
    const double before = processor_time();
    exchange(fd, false, rounds, bytes);
    const double each = (processor_time() - before) / (2 * rounds);
    close(fd);
    close(listener);
    waitpid(other, nullptr, 0);
    return each;
}

StartOrder order_for(uint32_t hosts, uint32_t per_host) {
    StartOrder order;
    Program program;
    program.argv = {"/home/user/work/application", "--input", "case.toml"};
    program.directory = "/home/user/work";
    program.count = hosts * per_host;
    order.part.environment = {"PATH=/usr/local/bin:/usr/bin:/bin", "LD_LIBRARY_PATH=/opt/lib"};
    job::JobDescription& description = order.part.description;
    description.draw();
    description.size = hosts * per_host;
    description.several_hosts = true;
    description.command = program.argv[0];
    std::vector<uint32_t> host_of_rank;
    for (uint32_t h = 0; h < hosts; ++h) {
        job::HostEntry entry;
        entry.id = h + 1;
        std::snprintf(entry.name, sizeof entry.name, "node%05u", h);
        entry.addresses = 2;
        description.hosts.push_back(entry);
        program.hosts.push_back({entry.name, per_host});
        order.part.tree_hosts.push_back(h);
        host_of_rank.insert(host_of_rank.end(), per_host, h);
    }
    std::vector<uint32_t> next(hosts, 0);
    description.placements = job::fold_placements(host_of_rank, 0, next);
    order.spec.programs.push_back(std::move(program));
    return order;
}

/// Measures a host's work for an order to start a job: reads it and creates the host's job segment.
double take(const std::string& bytes) {
    return time_of(20, [&] {
        StartOrder order;
        job::JobSegment segment;
        if (!decode(bytes, order)) give_up("decode");
        if (job::JobSegment::create(order.part.description, 1, segment) != MPI_SUCCESS) give_up("segment");
    });
}

double place_one() {
    static constexpr uint32_t kHosts = 1000, kEach = 64;
    return time_of(5,
                   [] {
                       std::vector<HostCapacity> rooms(kHosts);
                       PlacementRequest request;
                       request.count = kHosts * kEach;
                       for (uint32_t h = 0; h < kHosts; ++h) {
                           rooms[h].slots = kEach;
                           request.hosts.push_back(h);
                           request.slots.push_back(kEach);
                       }
                       std::vector<uint32_t> placed = place(request, rooms);
                       std::vector<uint32_t> next(kHosts, 0);
                       hosts_in_use(placed);
                       if (job::fold_placements(placed, 0, next).empty()) give_up("placement");
                   }) /
           (kHosts * kEach);
}

[[gnu::noinline]] pid_t start_myself(char* const arguments[]) {
    const pid_t child = vfork();
    if (child == 0) {
        execv(arguments[0], arguments);
        _exit(127);
    }
    return child;
}

/// Returns the median time for which a daemon is blocked to start a process: vfork returns when the child has executed its program.
double start_process() {
    std::vector<double> times;
    char name[] = "/proc/self/exe", argument[] = "end-at-once";
    char* const arguments[] = {name, argument, nullptr};
    for (int i = 0; i < 201; ++i) {
        timespec before, after;
        clock_gettime(CLOCK_MONOTONIC, &before);
        const pid_t child = start_myself(arguments);
        clock_gettime(CLOCK_MONOTONIC, &after);
        waitpid(child, nullptr, 0);
        times.push_back(static_cast<double>(after.tv_sec - before.tv_sec) +
                        static_cast<double>(after.tv_nsec - before.tv_nsec) * 1e-9);
    }
    std::nth_element(times.begin(), times.begin() + 100, times.end());
    return times[100];
}

}  // namespace

int main(int argc, char**) {
    if (argc > 1) return 0;  // the program was started by start_process()
    constexpr uint32_t kFew = 64, kMany = 4064;
    const std::string few = encode(order_for(kFew, 16)), many = encode(order_for(kMany, 16));
    const double take_few = take(few), take_many = take(many);
    const double host_entry = (take_many - take_few) / (kMany - kFew);
    const double host_bytes = static_cast<double>(many.size() - few.size()) / (kMany - kFew);
    constexpr size_t kSmall = 200, kLarge = 1 << 20;
    const double small = frame(20000, kSmall), large = frame(200, kLarge);
    const double byte = (large - small) / (kLarge - kSmall);
    std::printf("{\"handshake\": %.3g, \"frame\": %.3g, \"byte\": %.3g, \"place\": %.3g,\n", handshake(), small - kSmall * byte,
                byte, place_one());
    std::printf(
        " \"order_bytes\": %.0f, \"host_bytes\": %.1f, \"host_entry\": %.3g, \"segment\": %.3g, \"rank_start\": %.3g}\n",
        static_cast<double>(few.size()) - kFew * host_bytes, host_bytes, host_entry, take_few - kFew * host_entry,
        start_process());
    return 0;
}
