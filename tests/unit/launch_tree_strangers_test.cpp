// Strangers at the daemons' ports: port scans, garbage and silent connections disturb no daemon. STRANGERS in the environment sets their
// number (default 3000; 100000 takes ten seconds).
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <thread>

#include "launch/tree/addresses.h"
#include "launch/tree/tree.h"
#include "tree_forest.h"

namespace starling::launch {
namespace {

int knock(const DaemonAddress& endpoint) {
    sockaddr_in name{};
    socket_address(endpoint, name);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return -1;
    const timeval patience{2, 0};
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    // Reset instead of lingering: a hundred thousand closed connections would use up all ports.
    const linger reset{1, 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    if (connect(fd, reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0) return fd;
    close(fd);
    return -1;
}

class Crowd {
  public:
    Crowd(std::vector<DaemonAddress> endpoints, std::string hello, int number)
        : endpoints_(std::move(endpoints)), hello_(std::move(hello)), thread_([this, number] { run(number); }) {}
    ~Crowd() {
        thread_.join();
        for (const int fd : silent_) close(fd);
    }
    bool over() const { return over_; }
    int heard() const { return heard_; }

  private:
    void run(int number) {
        std::mt19937 random(5);
        for (int i = 0; i < number; ++i) {
            const int fd = knock(endpoints_[random() % endpoints_.size()]);
            if (fd < 0) continue;
            visit(fd, i % 8, random);
        }
        over_ = true;
    }

    void visit(int fd, int manner, std::mt19937& random) {
        std::string text(random() % 300, '\0');
        for (char& c : text) c = static_cast<char>(random());
        switch (manner) {
            case 0:  // closes the connection at once, as a port scan does
                break;
            case 1:
                text = "GET / HTTP/1.0\r\n\r\n";
                say(fd, text);
                break;
            case 2:  // the start of a daemon's handshake, then silence
                say(fd, hello_.substr(0, random() % hello_.size()));
                silent_.push_back(fd);
                fd = -1;
                break;
            case 3:  // a copy of a daemon's whole hello, and a guess for the rest of the handshake
                say(fd, hello_);
                heard_ += recv(fd, text.data(), 1, 0) > 0;
                say(fd, std::string(200, '\x5a'));
                break;
            case 4:
                silent_.push_back(fd);
                fd = -1;
                break;
            default:
                say(fd, text);
        }
        if (fd >= 0) close(fd);
        while (silent_.size() > 300) {
            close(silent_.front());
            silent_.pop_front();
        }
    }

    static void say(int fd, const std::string& text) { (void)!send(fd, text.data(), text.size(), MSG_NOSIGNAL); }

    std::vector<DaemonAddress> endpoints_;
    std::string hello_;
    std::deque<int> silent_;
    std::atomic<bool> over_{false};
    std::atomic<int> heard_{0};
    std::thread thread_;
};

TEST(TreeStrangers, PortScansAndGarbageDisturbNoDaemon) {
    const char* asked = std::getenv("STRANGERS");
    const int number = asked ? std::atoi(asked) : 3000;
    Forest forest(3);
    forest.settings.start_limit = std::chrono::milliseconds(60000);
    forest.plant();
    std::unique_ptr<Crowd> crowd;
    size_t sent = 0, received = 0, most_strangers = 0;
    forest.on_message = [&](TreeHostId, const TreeMessage& message) { received += message.payload == "to all"; };
    forest.step(
        "start", [&] { forest.root->grow(forest.names(20)); }, [&] { return forest.ready.size() == 20; });
    forest.step(
        "crowd",
        [&] {
            std::vector<DaemonAddress> endpoints = forest.root_inside->listener->endpoints();
            for (const auto& [host, node] : forest.nodes) {
                if (node.inside->listener) endpoints.push_back(node.inside->listener->endpoints()[0]);
            }
            Handshake overheard(Handshake::HandshakeRole::child, forest.settings.key);
            crowd = std::make_unique<Crowd>(endpoints, overheard.opening(), number);
        },
        [&] {
            most_strangers = std::max(most_strangers, forest.root_inside->listener->unauthenticated());
            forest.root->broadcast("to all");
            sent += forest.ready.size();
            // New daemons can still join meanwhile.
            if (forest.root_inside->hosts.size() < 40 && forest.random() % 20 == 0) forest.root->grow({"late"});
            return crowd->over();
        });
    forest.step(
        "calm", [&] { crowd.reset(); },
        [&] {
            return forest.ready.size() + 1 == forest.root_inside->hosts.size() && received >= sent &&
                   forest.root_inside->listener->unauthenticated() == 0;
        });
    forest.run(110);
    EXPECT_LE(most_strangers, TreeListener::kMaxStrangers);
    EXPECT_TRUE(forest.lost.empty());
    EXPECT_TRUE(forest.failed.empty());
    EXPECT_TRUE(forest.orphaned.empty());
}

TEST(TreeStrangers, APeerWithTheKeyThatSendsNonsenseIsDisconnected) {
    Forest forest(2);
    forest.plant();
    std::unique_ptr<TreeConnection> liar;
    int closed = 0;
    forest.step(
        "start", [&] { forest.root->grow(forest.names(6)); }, [&] { return forest.ready.size() == 6; });
    std::mt19937 random(3);
    for (int round = 0; round < 40; ++round) {
        forest.step(
            "lie",
            [&] {
                const int fd = knock(forest.root_inside->listener->endpoints()[0]);
                ASSERT_GE(fd, 0);
                fcntl(fd, F_SETFL, O_NONBLOCK);
                TreeConnection::Handlers handlers;
                handlers.on_open = [&] {
                    std::string body(random() % 60, '\0');
                    for (char& c : body) c = static_cast<char>(random() % 4);
                    // Send any kind of frame but the heartbeat, which has no contents.
                    liar->send(static_cast<TreeFrameKind>(2 + random() % (kLastFrameKind - 1)), body);
                };
                handlers.on_frame = [](TreeFrameKind kind, std::string&) { EXPECT_EQ(kind, TreeFrameKind::refuse); };
                handlers.on_close = [&](const std::string&) { ++closed; };
                liar = std::make_unique<TreeConnection>(forest.loop, fd, Handshake::HandshakeRole::child, forest.settings.key,
                                                        std::move(handlers));
            },
            [&, round] { return closed == round + 1; });
    }
    forest.run();
    liar.reset();
    EXPECT_TRUE(forest.lost.empty());
}

}  // namespace
}  // namespace starling::launch
