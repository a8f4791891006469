// Packets with file descriptors: if a peer sends more descriptors than requested, the receiver closes the surplus ones.
#include "job/descriptor_passing.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>

namespace starling::job {
namespace {

size_t open_descriptors() {
    size_t count = 0;
    for ([[maybe_unused]] const auto& each : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
    return count;
}

class DescriptorCall : public testing::Test {
  protected:
    void SetUp() override { ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0); }
    void TearDown() override {
        close(ends[0]);
        close(ends[1]);
    }

    /// Sends a packet of `bytes` bytes with `count` copies of this process's standard input.
    void send(size_t bytes, size_t count) {
        std::array<int, 8> descriptors{};
        alignas(cmsghdr) char control[CMSG_SPACE(sizeof descriptors)] = {};
        iovec part{&word, bytes};
        msghdr message{};
        message.msg_iov = &part;
        message.msg_iovlen = 1;
        message.msg_control = control;
        message.msg_controllen = CMSG_SPACE(count * sizeof(int));
        cmsghdr* rights = CMSG_FIRSTHDR(&message);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(count * sizeof(int));
        std::memcpy(CMSG_DATA(rights), descriptors.data(), count * sizeof(int));
        ASSERT_EQ(sendmsg(ends[0], &message, 0), static_cast<ssize_t>(bytes));
    }

    int ends[2] = {-1, -1};
    uint64_t word = 42;
};

TEST_F(DescriptorCall, OnlyTheFirstOfSeveralDescriptorsIsKept) {
    for (const size_t count : {1, 2, 3, 8}) {
        const size_t before = open_descriptors();
        send(sizeof word, count);
        uint64_t got = 0;
        int descriptor = -1;
        EXPECT_EQ(receive_with(ends[1], &got, sizeof got, descriptor), sizeof got);
        EXPECT_EQ(got, 42u);
        ASSERT_GE(descriptor, 0);
        EXPECT_EQ(open_descriptors(), before + 1) << count;
        close(descriptor);
        EXPECT_EQ(open_descriptors(), before) << count;
    }
}

TEST_F(DescriptorCall, ADescriptorWithoutDataIsClosed) {
    const size_t before = open_descriptors();
    send(0, 1);
    uint64_t got = 0;
    int descriptor = -1;
    EXPECT_EQ(receive_with(ends[1], &got, sizeof got, descriptor), 0u);
    EXPECT_EQ(descriptor, -1);
    EXPECT_EQ(open_descriptors(), before);
}

}  // namespace
}  // namespace starling::job
