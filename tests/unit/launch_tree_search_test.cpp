// A node's search for its parent over connections that say nothing, as after the loss of their packets.
#include "launch/tree/search.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "launch/tree/connection.h"
#include "launch/tree/messages.h"

namespace starling::launch {
namespace {

// A daemon's port at which the first connections get no answer, though the kernel accepts them, and later ones are served.
class DeafParent {
  public:
    DeafParent(EventLoop& loop, const TreeCredentials& credentials, int deaf)
        : loop_(loop),
          credentials_(credentials),
          deaf_(deaf),
          fd_(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
        sockaddr_in name{};
        name.sin_family = AF_INET;
        name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t length = sizeof name;
        EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&name), length), 0);
        EXPECT_EQ(listen(fd_, 16), 0);
        EXPECT_EQ(getsockname(fd_, reinterpret_cast<sockaddr*>(&name), &length), 0);
        port_ = ntohs(name.sin_port);
        loop_.watch(fd_, EPOLLIN, [this](uint32_t) { accept_one(); });
    }
    ~DeafParent() {
        loop_.forget(fd_);
        close(fd_);
        for (const int fd : silent_) close(fd);
    }
    std::vector<Ancestor> as_candidate() const { return {{kRootHost, "parent", {{"127.0.0.1", port_}}}}; }
    int accepted() const { return accepted_; }
    int served() const { return static_cast<int>(served_.size()); }

  private:
    void accept_one() {
        const int fd = accept4(fd_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) return;
        if (accepted_++ < deaf_) return silent_.push_back(fd);
        const size_t at = served_.size();
        TreeConnection::Handlers handlers;
        handlers.on_frame = [this, at](TreeFrameKind kind, std::string&) {
            EXPECT_EQ(kind, TreeFrameKind::attach);
            served_[at]->send(TreeFrameKind::welcome, encode(as_candidate()));
        };
        served_.push_back(
            std::make_unique<TreeConnection>(loop_, fd, Handshake::HandshakeRole::parent, credentials_, std::move(handlers)));
    }

    EventLoop& loop_;
    TreeCredentials credentials_;
    int deaf_, fd_, accepted_ = 0;
    uint16_t port_ = 0;
    std::vector<int> silent_;
    std::vector<std::unique_ptr<TreeConnection>> served_;
};

struct SearchResult {
    std::unique_ptr<TreeConnection> connection;  ///< to the parent; null: none was found
    std::string sentence;
};

SearchResult search(EventLoop& loop, const TreeCredentials& credentials, const DeafParent& parent, int seconds) {
    SearchResult result;
    UplinkSearch search(
        loop, credentials, parent.as_candidate(), "attach", std::chrono::seconds(seconds), false,
        [&](UplinkSearch::FoundParent parent) {
            result.connection = std::move(parent.connection);
            loop.stop(0);
        },
        [&](const std::string& sentence) {
            result.sentence = sentence;
            loop.stop(0);
        });
    loop.run();
    return result;
}

TEST(UplinkSearch, ASilentConnectionIsFollowedByAnotherToTheSameAddress) {
    EventLoop loop;
    const TreeCredentials credentials(make_key());
    const DeafParent parent(loop, credentials, 2);
    const SearchResult result = search(loop, credentials, parent, 60);
    EXPECT_TRUE(result.connection) << result.sentence;
    EXPECT_EQ(parent.accepted(), 3);
    EXPECT_EQ(parent.served(), 1);
}

TEST(UplinkSearch, AParentThatNeverAnswersIsReportedAtTheLimit) {
    EventLoop loop;
    const TreeCredentials credentials(make_key());
    const DeafParent parent(loop, credentials, 1000);
    const SearchResult result = search(loop, credentials, parent, 5);
    EXPECT_FALSE(result.connection);
    EXPECT_NE(result.sentence.find("no answer"), std::string::npos) << result.sentence;
    EXPECT_GT(parent.accepted(), 1);
}

}  // namespace
}  // namespace starling::launch
