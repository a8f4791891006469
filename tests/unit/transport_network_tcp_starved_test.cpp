// TCP connections while the kernel has no memory for what is sent. sendmsg() is replaced here, since the kernel cannot be made to fail so.
#include <dlfcn.h>
#include <sys/socket.h>

#include <cerrno>

#include "network_tcp_pair.h"
#include "transport/network/tcp/tcp.h"

namespace {

int refusals = 0, refusal = 0;

}  // namespace

extern "C" ssize_t sendmsg(int fd, const msghdr* message, int flags) {
    static const auto real = reinterpret_cast<ssize_t (*)(int, const msghdr*, int)>(dlsym(RTLD_NEXT, "sendmsg"));
    if (refusals > 0) {
        --refusals;
        errno = refusal;
        return -1;
    }
    return real(fd, message, flags);
}

namespace starling::network {
namespace {

class AStarvedSocket : public ::testing::TestWithParam<int> {
  protected:
    void refuse(int times) {
        refusal = GetParam();
        refusals = times;
    }
};

TEST_P(AStarvedSocket, SendsAFrameLater) {
    Pair pair;
    pair.open();
    refuse(3);
    EXPECT_EQ(pair.low.send("early"), SendResult::busy);
    pair.low.on_room = [&] {
        if (pair.low.send("late") == SendResult::done) pair.low.on_room = nullptr;
    };
    ASSERT_TRUE(pair.until([&] { return !pair.high.frames.empty(); }));
    EXPECT_EQ(pair.high.frames.front(), "late");
    EXPECT_EQ(refusals, 0);
}

TEST_P(AStarvedSocket, SendsTheRestOfAStream) {
    Pair pair;
    pair.open();
    const std::vector<std::byte> data(3'000'000, std::byte{7});
    pair.high.incoming[1] = {1, std::vector<std::byte>(data.size()), {}, true};
    OutStream stream(source_of(pair.low, data, 1, 1));
    refuse(2);
    pair.low.tcp->add_stream(*pair.low.connection, stream);
    ASSERT_TRUE(pair.until([&] { return pair.high.incoming[1].coverage.bytes() == data.size(); }));
    EXPECT_EQ(pair.high.incoming[1].memory, data);
    EXPECT_TRUE(pair.low.stranded.empty());
    pair.low.tcp->remove_stream(stream);
}

INSTANTIATE_TEST_SUITE_P(Errors, AStarvedSocket, ::testing::Values(ENOBUFS, ENOMEM));

}  // namespace
}  // namespace starling::network
