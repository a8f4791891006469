// TCP connections over the loopback device: how they open, carry frames, and end, normally or by a failure.
#include "transport/network/tcp/tcp.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "network_tcp_pair.h"
#include "transport/network/tcp/handshake.h"

namespace starling::network {
namespace {

sockaddr_in at(uint32_t address, uint16_t port) {
    sockaddr_in result{};
    result.sin_family = AF_INET;
    result.sin_addr.s_addr = address;
    result.sin_port = htons(port);
    return result;
}

/// Returns a plain blocking socket connected to a port of this machine.
int plain_connection(uint16_t port) {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    const sockaddr_in to = at(loopback(1), port);
    EXPECT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0) << strerror(errno);
    return fd;
}

/// Returns whether the other end closes the connection while the pair polls.
bool is_hung_up(Pair& pair, int fd) {
    return pair.until([&] {
        char byte;
        const ssize_t n = recv(fd, &byte, 1, MSG_DONTWAIT);
        return n == 0 || (n < 0 && errno != EAGAIN);
    });
}

TEST(Tcp, NothingIsOpenBeforeTheFirstOffer) {
    Pair pair;
    const int before = dup(0);
    close(before);
    pair.polls(10);
    ConnectionOffer offer;
    ASSERT_EQ(pair.low.tcp->offer(*pair.low.connection, offer), 0);
    EXPECT_NE(offer.port, 0);
    EXPECT_NE(offer.token, 0u);
    ASSERT_EQ(offer.addresses, 1);
    EXPECT_EQ(offer.address[0], loopback(1));
    const int after = dup(0);
    close(after);
    EXPECT_GT(after, before);
}

TEST(Tcp, FramesGoBothWaysInOrder) {
    Pair pair;
    pair.open();
    std::vector<std::string> sent;
    for (int i = 0; i < 2000; ++i) {
        sent.push_back("frame " + std::to_string(i) + std::string(static_cast<size_t>(i * 37 % 1500), 'x'));
        ASSERT_EQ(pair.low.send(sent.back()), SendResult::done);
        ASSERT_EQ(pair.high.send(sent.back()), SendResult::done);
        if (i % 50 == 0) pair.poll();
    }
    ASSERT_TRUE(pair.until([&] { return pair.low.frames.size() == 2000 && pair.high.frames.size() == 2000; }));
    EXPECT_EQ(pair.low.frames, sent);
    EXPECT_EQ(pair.high.frames, sent);
    EXPECT_EQ(pair.low.tcp->counters().frames_received, 2000u);
    EXPECT_EQ(pair.low.tcp->counters().frames_sent, 2000u);
    EXPECT_EQ(pair.low.tcp->counters().connections, 1u);
}

TEST(Tcp, OneWriteAndOneReadPerSmallFrame) {
    Pair pair;
    pair.open();
    pair.polls(10);
    const TcpCounters before = pair.low.tcp->counters();
    for (size_t i = 1; i <= 100; ++i) {
        pair.low.send("12345678");
        ASSERT_TRUE(pair.until([&] { return pair.high.frames.size() == i; }));
        pair.high.send("12345678");
        ASSERT_TRUE(pair.until([&] { return pair.low.frames.size() == i; }));
    }
    EXPECT_EQ(pair.low.tcp->counters().writes - before.writes, 100u);
    EXPECT_EQ(pair.low.tcp->counters().reads - before.reads, 100u);
}

TEST(Tcp, AFullSocketReturnsBusyAndLaterReportsRoom) {
    Pair pair;
    pair.open();
    const std::string frame(60000, 'f');
    size_t sent = 0;
    while (pair.low.send(frame) == SendResult::done) ASSERT_LT(++sent, 10000u);
    EXPECT_EQ(pair.low.room, 0);
    ASSERT_TRUE(pair.until([&] { return pair.low.room > 0; }));
    ASSERT_EQ(pair.low.send("last"), SendResult::done);
    ASSERT_TRUE(pair.until([&] { return pair.high.frames.size() == sent + 1; }));
    EXPECT_EQ(pair.high.frames.back(), "last");
    for (size_t i = 0; i < sent; ++i) ASSERT_EQ(pair.high.frames[i], frame);
}

TEST(Tcp, BothOfferAndTheHigherProcessConnects) {
    for (int order = 0; order < 2; ++order) {
        Pair pair;
        ConnectionOffer of_low, of_high;
        ASSERT_EQ(pair.low.tcp->offer(*pair.low.connection, of_low), 0);
        ASSERT_EQ(pair.high.tcp->offer(*pair.high.connection, of_high), 0);
        if (order == 0) pair.low.tcp->dial(*pair.low.connection, of_high);
        pair.polls(20);
        EXPECT_EQ(pair.low.opened, 0);
        pair.high.tcp->dial(*pair.high.connection, of_low);
        if (order == 1) {
            pair.polls(20);
            pair.low.tcp->dial(*pair.low.connection, of_high);  // no effect, because the connection is already open
        }
        ASSERT_TRUE(pair.until([&] { return pair.low.opened && pair.high.opened; }));
        pair.polls(100);
        EXPECT_EQ(pair.low.tcp->counters().sockets, 1u);
        EXPECT_EQ(pair.high.tcp->counters().sockets, 1u);
        EXPECT_EQ(pair.low.opened + pair.high.opened, 2);
        EXPECT_EQ(pair.low.failed + pair.high.failed, 0);
    }
}

TEST(Tcp, ARefusedConnectionNamesAddressAndPort) {
    Pair pair;
    ConnectionOffer offer;
    ASSERT_EQ(pair.low.tcp->offer(*pair.low.connection, offer), 0);
    pair.low.tcp.reset();
    ASSERT_EQ(pair.high.tcp->dial(*pair.high.connection, offer), 0);
    for (int i = 0; i < 100000 && !pair.high.failed; ++i) pair.high.tcp->poll(now_ns());
    ASSERT_EQ(pair.high.failed, 1);
    EXPECT_NE(pair.high.failure.find("127.0.0.1 port " + std::to_string(offer.port)), std::string::npos) << pair.high.failure;
    EXPECT_NE(pair.high.failure.find("refused"), std::string::npos) << pair.high.failure;
    EXPECT_EQ(pair.high.send("x"), SendResult::closed);
    EXPECT_EQ(pair.high.connection->state(), Connection::CarrierState::idle);
}

bool listens_at(uint8_t last, uint16_t port) {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    const sockaddr_in address = at(loopback(last), port);
    const bool connected = connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    close(fd);
    return connected;
}

TEST(Tcp, ListensOnlyOnChosenRails) {
    TcpOptions options;
    options.on_rails_alone = true;
    Pair pair({rail(1), rail(2)}, options);
    ConnectionOffer offer;
    ASSERT_EQ(pair.low.tcp->offer(*pair.low.connection, offer), 0);
    EXPECT_TRUE(listens_at(1, offer.port));
    EXPECT_TRUE(listens_at(2, offer.port));
    EXPECT_FALSE(listens_at(3, offer.port));
    const TcpRail now[] = {rail(2), rail(3)};
    pair.low.tcp->set_rails(now);
    EXPECT_TRUE(listens_at(3, offer.port));
    pair.open();
}

TEST(Tcp, AnUnansweredHelloTimesOut) {
    TcpOptions options;
    options.connect_limit_ns = 50'000'000;
    Pair pair({rail(1)}, options);
    // This socket listens, but never answers the hello, as behind a firewall that drops packets.
    const int silent = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address = at(loopback(1), 0);
    socklen_t length = sizeof address;
    ASSERT_EQ(bind(silent, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    ASSERT_EQ(listen(silent, 5), 0);
    getsockname(silent, reinterpret_cast<sockaddr*>(&address), &length);
    ConnectionOffer offer;
    ASSERT_EQ(pair.low.tcp->offer(*pair.low.connection, offer), 0);
    offer.port = ntohs(address.sin_port);
    ASSERT_EQ(pair.high.tcp->dial(*pair.high.connection, offer), 0);
    ASSERT_TRUE(pair.until([&] { return pair.high.failed && pair.low.failed; }));
    EXPECT_NE(pair.high.failure.find("firewall"), std::string::npos) << pair.high.failure;
    EXPECT_NE(pair.low.failure.find("asked to connect to port"), std::string::npos) << pair.low.failure;
    close(silent);
    // The same connection can still be opened after the timeout.
    pair.low.opened = pair.high.opened = 0;
    pair.open();
}

TEST(Tcp, AnotherVersionIsNamed) {
    Pair pair;
    ConnectionOffer offer;
    ASSERT_EQ(pair.low.tcp->offer(*pair.low.connection, offer), 0);
    offer.version = 9;
    EXPECT_NE(pair.high.tcp->dial(*pair.high.connection, offer), 0);
    EXPECT_NE(failure_text().find("version 9"), std::string::npos);

    const int caller = plain_connection(offer.port);
    TcpHello hello;
    hello.version = 77;
    ASSERT_EQ(send(caller, &hello, sizeof hello, 0), static_cast<ssize_t>(sizeof hello));
    pair.polls(100);
    TcpWelcome welcome;
    ASSERT_EQ(recv(caller, &welcome, sizeof welcome, MSG_WAITALL), static_cast<ssize_t>(sizeof welcome));
    EXPECT_EQ(welcome.answer, HandshakeAnswer::wrong_version);
    EXPECT_NE(std::string(refusal(welcome, 0)).find("version"), std::string::npos);
    EXPECT_TRUE(is_hung_up(pair, caller));
    close(caller);
}

TEST(Tcp, StrangersAreDisconnected) {
    Pair pair;
    pair.open();
    ConnectionOffer offer;
    ASSERT_EQ(pair.low.tcp->offer(*pair.low.connection, offer), 0);
    const auto hung_up_after = [&](const void* words, size_t bytes) {
        const int fd = plain_connection(offer.port);
        EXPECT_EQ(send(fd, words, bytes, MSG_NOSIGNAL), static_cast<ssize_t>(bytes));
        const bool result = is_hung_up(pair, fd);
        close(fd);
        return result;
    };
    std::string garbage(4096, 'G');
    EXPECT_TRUE(hung_up_after(garbage.data(), garbage.size()));
    TcpHello hello;
    hello.job = hello.target_job = 7;
    hello.rank = 2;
    hello.target_rank = 1;
    hello.key = 1001;
    hello.token = offer.token;
    const auto wrong = [&](auto TcpHello::*member) {
        TcpHello bad = hello;
        bad.*member ^= 1;
        return hung_up_after(&bad, sizeof bad);
    };
    EXPECT_TRUE(wrong(&TcpHello::key));
    EXPECT_TRUE(wrong(&TcpHello::token));
    EXPECT_TRUE(wrong(&TcpHello::rank));
    EXPECT_TRUE(wrong(&TcpHello::target_rank));
    EXPECT_TRUE(wrong(&TcpHello::job));
    EXPECT_TRUE(wrong(&TcpHello::target_job));
    EXPECT_TRUE(wrong(&TcpHello::magic));
    EXPECT_EQ(pair.low.tcp->counters().rejected, 8u);
    EXPECT_EQ(pair.low.send("still there"), SendResult::done);
    ASSERT_TRUE(pair.until([&] { return !pair.high.frames.empty(); }));
}

TEST(Tcp, AThousandSilentCallersDoNoHarm) {
    Pair pair;
    pair.open();
    ConnectionOffer offer;
    ASSERT_EQ(pair.low.tcp->offer(*pair.low.connection, offer), 0);
    std::vector<int> callers;
    for (int i = 0; i < 1000; ++i) {
        callers.push_back(plain_connection(offer.port));
        if (i % 16 == 0) pair.polls(2);
        if (callers.size() > 100) {
            close(callers.front());
            callers.erase(callers.begin());
        }
    }
    EXPECT_EQ(pair.low.send("still there"), SendResult::done);
    ASSERT_TRUE(pair.until([&] { return !pair.high.frames.empty() && pair.low.tcp->counters().rejected >= 960; }));
    for (const int fd : callers) close(fd);
}

TEST(Tcp, WithoutDescriptorsCallersAreDisconnected) {
    Pair pair;
    ConnectionOffer offer;
    ASSERT_EQ(pair.low.tcp->offer(*pair.low.connection, offer), 0);
    const int caller = plain_connection(offer.port);
    int out[2];
    ASSERT_EQ(pipe(out), 0);
    const int real_stderr = dup(2);
    dup2(out[1], 2);
    std::vector<int> taken;
    rlimit before, tight;
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    tight = before;
    tight.rlim_cur = 64;
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &tight), 0);
    for (int fd; (fd = dup(0)) >= 0;) taken.push_back(fd);
    EXPECT_TRUE(is_hung_up(pair, caller));
    EXPECT_EQ(pair.high.tcp->dial(*pair.high.connection, offer), 0);
    EXPECT_EQ(pair.high.failed, 1);
    EXPECT_NE(pair.high.failure.find("ulimit"), std::string::npos) << pair.high.failure;
    for (const int fd : taken) close(fd);
    setrlimit(RLIMIT_NOFILE, &before);
    dup2(real_stderr, 2);
    std::string told(4096, '\0');
    told.resize(static_cast<size_t>(read(out[0], told.data(), told.size())));
    for (const int fd : {out[0], out[1], real_stderr}) close(fd);
    close(caller);
    EXPECT_NE(told.find("ulimit -n"), std::string::npos);
    EXPECT_EQ(told.find("ulimit -n"), told.rfind("ulimit -n"));
    pair.open();  // succeeds, because descriptors are available again
}

TEST(Tcp, GarbageOnAnOpenConnectionBreaksIt) {
    Pair pair;
    pair.open();
    pair.high.refuse_frames = true;
    pair.low.send("nonsense");
    ASSERT_TRUE(pair.until([&] { return pair.high.broken == 1 && (pair.low.broken == 1 || pair.low.ended == 1); }));
    EXPECT_NE(pair.high.failure.find("is malformed"), std::string::npos) << pair.high.failure;
    EXPECT_EQ(pair.high.send("x"), SendResult::closed);
}

TEST(Tcp, ClosingDeliversFramesSentBefore) {
    Pair pair;
    pair.open();
    const std::string frame(50000, 'f');
    size_t sent = 0;
    while (pair.low.send(frame) == SendResult::done) ++sent;
    pair.low.tcp->finish(*pair.low.connection);
    EXPECT_EQ(pair.low.send("x"), SendResult::closed);
    EXPECT_EQ(pair.high.send("answer"), SendResult::done);
    ASSERT_TRUE(pair.until([&] { return pair.high.ended == 1; }));
    EXPECT_EQ(pair.high.frames.size(), sent);
    EXPECT_EQ(pair.low.ended, 0);
    pair.high.tcp->finish(*pair.high.connection);
    pair.high.tcp->drop(*pair.high.connection);
    ASSERT_TRUE(pair.until([&] { return pair.low.ended == 1; }));
    EXPECT_EQ(pair.low.frames, std::vector<std::string>{"answer"});
    pair.low.tcp->drop(*pair.low.connection);
    EXPECT_EQ(pair.low.broken + pair.high.broken, 0);
    EXPECT_EQ(pair.low.tcp->counters().connections, 0u);
    EXPECT_EQ(pair.low.tcp->counters().sockets, 0u);
}

TEST(Tcp, FramesToAClosingPeerMayBeLost) {
    Pair pair;
    pair.open();
    pair.high.tcp->finish(*pair.high.connection);
    ASSERT_TRUE(pair.until([&] { return pair.low.ended == 1; }));
    // The peer closes its socket without having read the frame, so its host answers with a reset.
    ASSERT_EQ(pair.low.send(std::string(50000, 'f')), SendResult::done);
    pair.high.tcp->drop(*pair.high.connection);
    EXPECT_TRUE(pair.until([&] { return pair.low.broken == 1; }));
}

TEST(Tcp, ADroppedConnectionIsNoticedByThePeer) {
    Pair pair;
    pair.open();
    pair.high.tcp->drop(*pair.high.connection);
    ASSERT_TRUE(pair.until([&] { return pair.low.ended + pair.low.broken == 1; }));
    // Open a new connection, for which both sides need new objects.
    pair.low.tcp->drop(*pair.low.connection);
    pair.polls(5);
    pair.low.connection = &pair.low.tcp->add({7, 2}, 1002, &pair.low, nullptr);
    pair.high.connection = &pair.high.tcp->add({7, 1}, 1001, &pair.high, nullptr);
    pair.low.opened = pair.high.opened = 0;
    pair.open();
}

// A forked child inherits all descriptors. A socket closed here must report no more events, which would name freed memory, and the peer
// must see the end.
TEST(Tcp, AForkedChildKeepsNoConnectionAlive) {
    Pair pair;
    pair.open();
    const pid_t child = fork();
    if (child == 0) {
        alarm(250);
        while (true) pause();
    }
    pair.high.tcp->drop(*pair.high.connection);
    EXPECT_TRUE(pair.until([&] { return pair.low.ended + pair.low.broken == 1; }));
    pair.low.tcp->drop(*pair.low.connection);
    pair.polls(5);
    pollfd waiting{pair.high.tcp->wait_fd(), POLLIN, 0};
    EXPECT_EQ(::poll(&waiting, 1, 0), 0);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
}

TEST(Tcp, DroppedWhileAFrameIsDelivered) {
    Pair pair;
    pair.open();
    pair.low.on_frame = [&](const std::string&) { pair.low.tcp->drop(*pair.low.connection); };
    for (int i = 0; i < 10; ++i) pair.high.send("frame");
    ASSERT_TRUE(pair.until([&] { return pair.high.ended + pair.high.broken == 1; }));
    EXPECT_EQ(pair.low.frames.size(), 1u);
}

TEST(Tcp, ItsDescriptorWakesASleeper) {
    Pair pair;
    pair.open();
    pair.polls(100);
    pollfd waiting{pair.high.tcp->wait_fd(), POLLIN, 0};
    EXPECT_EQ(::poll(&waiting, 1, 0), 0);
    pair.low.send("wake up");
    EXPECT_EQ(::poll(&waiting, 1, 5000), 1);
    pair.polls(100);
    EXPECT_EQ(pair.high.frames.size(), 1u);
    EXPECT_EQ(::poll(&waiting, 1, 0), 0);
}

}  // namespace
}  // namespace starling::network
