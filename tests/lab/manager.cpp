// lab-manager MIN MAX [--seed N] [--pid FILE]: a subnet manager for the lab's switch. A bridge by itself forwards a group to a port as soon
// as it gets the host's report, which no larger network does. With this program the bridges get no reports: a rule drops them. The program
// reads them, and MIN to MAX milliseconds after each it adds the port to the bridge's table or removes it, like OpenSM, which computes
// routes and programs switches with a delay. No frames pass through this program.
//
// The joins and leaves of a port for one group are carried out in order. Runs in the switch's network namespace; writes its process id to
// --pid's file when it is ready.
#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/if_bridge.h>
#include <linux/if_packet.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <map>
#include <queue>
#include <random>
#include <string>

#include "groups.h"
#include "problem.h"

using namespace starling::lab;
using Clock = std::chrono::steady_clock;

namespace {

struct Arguments {
    double least = 0, most = 0;  // milliseconds
    unsigned seed = 1;
    std::string pid_file;
};

Arguments parse(int argc, char** argv) {
    Arguments result;
    int numbers = 0;
    for (int i = 1; i < argc; ++i) {
        const std::string word = argv[i];
        const char* value = i + 1 < argc ? argv[i + 1] : "0";
        if (word == "--seed")
            result.seed = static_cast<unsigned>(std::atoi(value)), ++i;
        else if (word == "--pid")
            result.pid_file = value, ++i;
        else
            (numbers++ == 0 ? result.least : result.most) = std::atof(word.c_str());
    }
    if (numbers != 2 || result.least < 0 || result.most < result.least)
        errno = EINVAL, die("the arguments must be two times in milliseconds, the lesser first");
    return result;
}

// Returns a socket that receives all IGMP packets from any interface, before the bridges get them.
int open_listener() {
    const int fd = must(socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, 0), "packet socket");
    // A BPF filter that accepts a packet if its protocol is IPv4 and its IP protocol is IGMP.
    sock_filter code[] = {{BPF_LD | BPF_H | BPF_ABS, 0, 0, static_cast<unsigned>(SKF_AD_OFF + SKF_AD_PROTOCOL)},
                          {BPF_JMP | BPF_JEQ | BPF_K, 0, 3, ETH_P_IP},
                          {BPF_LD | BPF_B | BPF_ABS, 0, 0, 9},
                          {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 2},
                          {BPF_RET | BPF_K, 0, 0, 2048},
                          {BPF_RET | BPF_K, 0, 0, 0}};
    const sock_fprog filter{std::size(code), code};
    must(setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter), "filter");
    int on = 1, bytes = 8 << 20;
    must(setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof on), "incoming only");
    setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes);
    sockaddr_ll address{};
    address.sll_family = AF_PACKET;
    address.sll_protocol = htons(ETH_P_ALL);
    must(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), "packet socket");
    return fd;
}

// Returns the bridge of an interface, or 0 if it is not a bridge's port, like the far side of a faulty cable.
unsigned bridge_of(unsigned port) {
    char name[IF_NAMESIZE];
    if (!if_indextoname(port, name)) return 0;
    unsigned index = 0;
    std::ifstream(std::string("/sys/class/net/") + name + "/master/ifindex") >> index;
    return index;
}

// Adds members to the bridges' multicast tables and removes them.
class Tables {
  public:
    Tables() : fd_(must(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE), "netlink")) {}

    void write(unsigned bridge, unsigned port, const Wish& wish) {
        struct {
            nlmsghdr head{};
            br_port_msg port{};
            rtattr attribute{};
            br_mdb_entry entry{};
        } order;
        order.head.nlmsg_len = sizeof order;
        order.head.nlmsg_type = wish.join ? RTM_NEWMDB : RTM_DELMDB;
        order.head.nlmsg_flags = static_cast<uint16_t>(NLM_F_REQUEST | NLM_F_ACK | (wish.join ? NLM_F_CREATE : 0));
        order.port.family = AF_BRIDGE;
        order.port.ifindex = bridge;
        order.attribute.rta_type = MDBA_SET_ENTRY;
        order.attribute.rta_len = RTA_LENGTH(sizeof order.entry);
        order.entry.ifindex = port;
        order.entry.state = MDB_PERMANENT;
        order.entry.addr.u.ip4 = wish.group;
        order.entry.addr.proto = htons(ETH_P_IP);
        must(static_cast<int>(send(fd_, &order, sizeof order, 0)), "netlink");
        // Ignore entries that exist already or no longer, and ports that no longer exist.
        char answer[4096];
        must(static_cast<int>(recv(fd_, answer, sizeof answer, 0)), "netlink");
        const int error = reinterpret_cast<const nlmsgerr*>(NLMSG_DATA(reinterpret_cast<const nlmsghdr*>(answer)))->error;
        if (error != 0 && error != -EEXIST && error != -ENOENT && error != -ENODEV && error != -EINVAL)
            errno = -error, die("cannot change the bridge's table");
    }

  private:
    int fd_;
};

class Manager {
  public:
    explicit Manager(const Arguments& arguments)
        : listener_(open_listener()), luck_(arguments.seed), price_(arguments.least, arguments.most) {}

    [[noreturn]] void run() {
        while (true) {
            pollfd wait{listener_, POLLIN, 0};
            const timespec left = until_next();
            if (ppoll(&wait, 1, work_.empty() ? nullptr : &left, nullptr) > 0) listen();
            for (const auto now = Clock::now(); !work_.empty() && work_.top().due <= now; work_.pop()) {
                const Work& work = work_.top();
                tables_.write(work.bridge, work.port, work.wish);
            }
        }
    }

  private:
    struct Work {
        Clock::time_point due;
        uint64_t number;  // sequence number, for the order of work that is due at once
        unsigned bridge, port;
        Wish wish;
        bool operator<(const Work& other) const {  // reversed, because a priority_queue's top is the greatest
            return due != other.due ? due > other.due : number > other.number;
        }
    };

    timespec until_next() const {
        if (work_.empty()) return {};
        const auto ns = std::max<int64_t>(0, std::chrono::nanoseconds(work_.top().due - Clock::now()).count());
        return {ns / 1000000000, ns % 1000000000};
    }

    void listen() {
        unsigned char packet[2048];
        sockaddr_ll from{};
        socklen_t length = sizeof from;
        const ssize_t bytes = recvfrom(listener_, packet, sizeof packet, 0, reinterpret_cast<sockaddr*>(&from), &length);
        const auto port = static_cast<unsigned>(from.sll_ifindex);
        const unsigned bridge = bytes > 0 ? bridge_of(port) : 0;
        if (bridge == 0) return;
        for (const Wish& wish : wishes_of(packet, static_cast<size_t>(bytes))) {
            // Ignore a report that repeats the last one, as hosts send regularly.
            auto& [last, joined] = last_[{port, wish.group}];
            if (joined == wish.join) continue;
            joined = wish.join;
            const auto price = std::chrono::duration<double, std::milli>(price_(luck_));
            last = std::max(last, Clock::now() + std::chrono::duration_cast<Clock::duration>(price));
            work_.push({last, next_number_++, bridge, port, wish});
        }
    }

    struct Last {
        Clock::time_point due;
        bool joined = false;
    };

    int listener_;
    Tables tables_;
    std::mt19937 luck_;
    std::uniform_real_distribution<double> price_;
    std::priority_queue<Work> work_;
    std::map<std::pair<unsigned, uint32_t>, Last> last_;
    uint64_t next_number_ = 0;
};

void go_to_background(const std::string& pid_file) {
    if (pid_file.empty()) return;
    must(daemon(0, 0), "background");
    std::ofstream(pid_file) << getpid() << '\n';
}

}  // namespace

int main(int argc, char** argv) {
    const Arguments arguments = parse(argc, argv);
    Manager manager(arguments);
    go_to_background(arguments.pid_file);
    manager.run();
}
