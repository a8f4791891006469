// lab-wire A B: a faulty cable. Forwards Ethernet frames between two interfaces of the switch, in both directions, and drops,
// duplicates, delays and reorders some of them. (The kernel's netem could do this, but is not built in everywhere.)
//
//   --drop P --duplicate P --reorder P   probabilities from 0 to 1, per frame; a reordered frame is delayed by up to 2 ms more than others
//   --delay MS --jitter MS               delays every frame, plus or minus a uniformly distributed jitter; jitter reorders, too
//   --toward-host, --from-host           affects only frames in this direction (A is the host's side); default: both
//   --seed N                             seed of the random faults
//   --pid FILE                           goes to the background when it is ready, and writes its process id to FILE
//
// Frames keep their offload header (PACKET_VNET_HDR), because virtual cables usually leave checksums to hardware that does not exist. The
// lab switches segmentation off meanwhile, so that each packet is one frame.
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <queue>
#include <random>
#include <string>
#include <vector>

#include "problem.h"

using namespace starling::lab;
using Clock = std::chrono::steady_clock;

namespace {

struct Faults {
    double drop = 0, duplicate = 0, reorder = 0;  // probabilities
    double delay = 0, jitter = 0;                 // milliseconds
    bool toward_host = true, from_host = true;
    unsigned seed = 1;
};

struct Arguments {
    Faults faults;
    std::string a, b, pid_file;
};

constexpr double reorder_ms = 2;
constexpr size_t most_waiting = 100000;  // frames in transit; further ones are dropped, as in a full queue

struct Frame {
    Clock::time_point due;
    uint64_t number;  // sequence number, for the order of frames that are due at once
    int to;
    std::vector<char> bytes;
    bool operator<(const Frame& other) const {  // reversed, because a priority_queue's top is the greatest
        return due != other.due ? due > other.due : number > other.number;
    }
};

Arguments parse(int argc, char** argv) {
    Arguments result;
    Faults& f = result.faults;
    std::vector<std::string> names;
    for (int i = 1; i < argc; ++i) {
        std::string word = argv[i];
        const char* value = i + 1 < argc ? argv[i + 1] : "0";
        if (word == "--drop")
            f.drop = std::atof(value), ++i;
        else if (word == "--duplicate")
            f.duplicate = std::atof(value), ++i;
        else if (word == "--reorder")
            f.reorder = std::atof(value), ++i;
        else if (word == "--delay")
            f.delay = std::atof(value), ++i;
        else if (word == "--jitter")
            f.jitter = std::atof(value), ++i;
        else if (word == "--seed")
            f.seed = static_cast<unsigned>(std::atoi(value)), ++i;
        else if (word == "--pid")
            result.pid_file = value, ++i;
        else if (word == "--toward-host")
            f.from_host = false;
        else if (word == "--from-host")
            f.toward_host = false;
        else
            names.push_back(word);
    }
    if (names.size() != 2) errno = EINVAL, die("the arguments must name two interfaces");
    result.a = names[0];
    result.b = names[1];
    return result;
}

// Returns a socket that receives all frames arriving at an interface and can send any frame from it.
int open_interface(const std::string& name) {
    int fd = must(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), "packet socket");
    int on = 1, bytes = 32 << 20;
    must(setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof on), "offload headers");
    must(setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof on), "incoming only");
    setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes);
    setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof bytes);
    sockaddr_ll address{};
    address.sll_family = AF_PACKET;
    address.sll_protocol = htons(ETH_P_ALL);
    address.sll_ifindex = static_cast<int>(if_nametoindex(name.c_str()));
    if (address.sll_ifindex == 0) die(name.c_str());
    must(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), name.c_str());
    return fd;
}

class Wire {
  public:
    Wire(const Faults& faults, int host_side, int switch_side)
        : faults_(faults), host_side_(host_side), switch_side_(switch_side), luck_(faults.seed) {}

    [[noreturn]] void run() {
        while (true) {
            pollfd waits[2] = {{host_side_, POLLIN, 0}, {switch_side_, POLLIN, 0}};
            timespec left = until_next();
            if (ppoll(waits, 2, on_the_way_.empty() ? nullptr : &left, nullptr) < 0) continue;
            take(host_side_, switch_side_, faults_.from_host);
            take(switch_side_, host_side_, faults_.toward_host);
            deliver();
        }
    }

  private:
    timespec until_next() const {
        if (on_the_way_.empty()) return {};
        auto ns = std::chrono::nanoseconds(on_the_way_.top().due - Clock::now()).count();
        ns = std::max<decltype(ns)>(ns, 0);
        return {ns / 1000000000, ns % 1000000000};
    }

    void take(int from, int to, bool faulty) {
        char bytes[70000];
        for (int i = 0; i < 64; ++i) {
            ssize_t n = recv(from, bytes, sizeof bytes, 0);
            if (n <= 0) return;
            if (!faulty) {
                put(to, bytes, static_cast<size_t>(n), 0);
                continue;
            }
            if (chance(faults_.drop)) continue;
            int copies = chance(faults_.duplicate) ? 2 : 1;
            while (copies-- > 0) put(to, bytes, static_cast<size_t>(n), lateness());
        }
    }

    bool chance(double probability) { return probability > 0 && share_(luck_) < probability; }

    double lateness() {
        double ms = faults_.delay;
        if (faults_.jitter > 0) ms += faults_.jitter * (2 * share_(luck_) - 1);
        if (chance(faults_.reorder)) ms += reorder_ms * share_(luck_);
        return std::max(ms, 0.0);
    }

    void put(int to, const char* bytes, size_t size, double ms) {
        if (on_the_way_.size() >= most_waiting) return;
        auto late = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double, std::milli>(ms));
        on_the_way_.push({Clock::now() + late, next_number_++, to, {bytes, bytes + size}});
    }

    void deliver() {
        Clock::time_point now = Clock::now();
        while (!on_the_way_.empty() && on_the_way_.top().due <= now) {
            const Frame& frame = on_the_way_.top();
            // If the socket is full, the frame is lost, as in a full switch.
            (void)!send(frame.to, frame.bytes.data(), frame.bytes.size(), MSG_DONTWAIT);
            on_the_way_.pop();
        }
    }

    Faults faults_;
    int host_side_, switch_side_;
    std::mt19937 luck_;
    std::uniform_real_distribution<double> share_{0, 1};
    std::priority_queue<Frame> on_the_way_;
    uint64_t next_number_ = 0;
};

void go_to_background(const std::string& pid_file) {
    if (pid_file.empty()) return;
    must(daemon(0, 0), "background");
    FILE* file = std::fopen(pid_file.c_str(), "w");
    if (file == nullptr) die(pid_file.c_str());
    std::fprintf(file, "%d\n", getpid());
    std::fclose(file);
}

}  // namespace

int main(int argc, char** argv) {
    Arguments arguments = parse(argc, argv);
    Wire wire(arguments.faults, open_interface(arguments.a), open_interface(arguments.b));
    go_to_background(arguments.pid_file);
    wire.run();
}
