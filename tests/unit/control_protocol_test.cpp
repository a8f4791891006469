#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string>

#include "base/wire.h"
#include "control/control_protocol.h"
#include "control/local_socket.h"

namespace starling {
namespace {

TEST(Wire, NumbersSurviveEncodingAtTheirLimits) {
    Writer writer;
    writer.number(uint8_t{255}).number(int16_t{-32768}).number(uint32_t{0x01020304}).number(INT64_MIN).number(UINT64_MAX);
    Reader reader(writer.view());
    EXPECT_EQ(reader.number<uint8_t>(), 255);
    EXPECT_EQ(reader.number<int16_t>(), -32768);
    EXPECT_EQ(reader.number<uint32_t>(), 0x01020304u);
    EXPECT_EQ(reader.number<int64_t>(), INT64_MIN);
    EXPECT_EQ(reader.number<uint64_t>(), UINT64_MAX);
    EXPECT_TRUE(reader.done());
}

TEST(Wire, IsLittleEndian) {
    Writer writer;
    writer.number(uint32_t{0x01020304});
    EXPECT_EQ(writer.view(), std::string("\x04\x03\x02\x01"));
}

TEST(Wire, StringsKeepZeroBytes) {
    const std::string text("a\0b", 3);
    Writer writer;
    writer.string(text).string("");
    Reader reader(writer.view());
    EXPECT_EQ(reader.string(), text);
    EXPECT_EQ(reader.string(), "");
    EXPECT_TRUE(reader.done());
}

TEST(Wire, EveryTruncationFailsForGood) {
    Writer writer;
    writer.number(uint32_t{7}).string("hello").number(uint64_t{9});
    const std::string whole(writer.view());
    for (size_t length = 0; length < whole.size(); ++length) {
        Reader reader(std::string_view(whole).substr(0, length));
        reader.number<uint32_t>();
        reader.string();
        reader.number<uint64_t>();
        EXPECT_FALSE(reader.ok()) << length;
        EXPECT_EQ(reader.number<uint8_t>(), 0) << length;
        EXPECT_FALSE(reader.ok()) << length;
    }
}

TEST(Wire, ExtraBytesAreAnError) {
    Reader reader("\x01\x02");
    reader.number<uint8_t>();
    EXPECT_TRUE(reader.ok());
    EXPECT_FALSE(reader.done());
}

TEST(Wire, HostileCountsAllocateNothing) {
    Writer writer;
    writer.number(uint32_t{0x40000000}).string("x");
    Reader reader(writer.view());
    EXPECT_EQ(reader.count(4), 0u);
    EXPECT_FALSE(reader.ok());
}

TEST(Wire, HostileLengthsReadNothing) {
    Writer writer;
    writer.number(UINT32_MAX);
    Reader reader(writer.view());
    EXPECT_EQ(reader.string(), "");
    EXPECT_FALSE(reader.ok());
}

using control::ControlFrame;
using control::FrameDecoder;
using control::MessageKind;

TEST(Frames, AreDecodedWholeHoweverTheStreamIsCut) {
    const std::string bytes = encode_frame(MessageKind::publish, "first") + encode_frame(MessageKind::lookup, "") +
                              encode_frame(MessageKind::reply, std::string(200, 'x'));
    for (size_t step = 1; step <= bytes.size(); ++step) {
        FrameDecoder decoder;
        std::string seen;
        for (size_t at = 0; at < bytes.size(); at += step) {
            decoder.feed(std::string_view(bytes).substr(at, step));
            ControlFrame frame;
            while (decoder.next(frame) == FrameDecoder::ControlDecodeResult::frame) {
                seen += std::to_string(static_cast<int>(frame.kind)) + ":" + frame.payload + ";";
            }
        }
        EXPECT_EQ(seen, "3:first;5:;7:" + std::string(200, 'x') + ";") << step;
    }
}

TEST(Frames, GarbageEndsDecoding) {
    FrameDecoder decoder;
    ControlFrame frame;
    decoder.feed("GET / HTTP/1.1\r\n\r\n");
    EXPECT_EQ(decoder.next(frame), FrameDecoder::ControlDecodeResult::garbage);
    decoder.feed(encode_frame(MessageKind::publish, "x"));
    EXPECT_EQ(decoder.next(frame), FrameDecoder::ControlDecodeResult::garbage);
}

TEST(Frames, UnknownKindsAndLongPayloadsAreGarbage) {
    ControlFrame frame;
    FrameDecoder unknown;
    unknown.feed(encode_frame(static_cast<MessageKind>(99), ""));
    EXPECT_EQ(unknown.next(frame), FrameDecoder::ControlDecodeResult::garbage);
    FrameDecoder longer(10);
    longer.feed(encode_frame(MessageKind::spawn, std::string(11, 'x')));
    EXPECT_EQ(longer.next(frame), FrameDecoder::ControlDecodeResult::garbage);
    FrameDecoder enough(11);
    enough.feed(encode_frame(MessageKind::spawn, std::string(11, 'x')));
    EXPECT_EQ(enough.next(frame), FrameDecoder::ControlDecodeResult::frame);
}

TEST(Messages, SpawnRequestSurvivesEncodingAndDecoding) {
    control::SpawnRequest request;
    request.blob = std::string("\0\1", 2);
    request.commands.push_back({{"./worker", "", "two words"}, 3, {{"wdir", "/tmp"}, {"soft", "1:3"}}});
    request.commands.push_back({{"other"}, 1, {}});
    control::SpawnRequest back;
    ASSERT_TRUE(decode(encode(request), back));
    EXPECT_EQ(back.blob, request.blob);
    ASSERT_EQ(back.commands.size(), 2u);
    EXPECT_EQ(back.commands[0].argv, request.commands[0].argv);
    EXPECT_EQ(back.commands[0].info, request.commands[0].info);
    EXPECT_EQ(back.commands[1].maxprocs, 1u);
}

TEST(Messages, EveryTruncationOfASpawnRequestIsRefused) {
    control::SpawnRequest request;
    request.blob = "blob";
    request.commands.push_back({{"a", "b"}, 3, {{"k", "v"}}});
    const std::string whole = encode(request);
    for (size_t length = 0; length < whole.size(); ++length) {
        control::SpawnRequest back;
        EXPECT_FALSE(decode(std::string_view(whole).substr(0, length), back)) << length;
    }
    control::SpawnRequest back;
    EXPECT_FALSE(decode(whole + "x", back));
}

TEST(LocalSocket, NonblockingConnectFailsIfTheListenersQueueIsFull) {
    const std::string name = "starling-test-" + std::to_string(getpid());
    const int listener = control::listen_local(name);
    ASSERT_GE(listener, 0);
    int fd, connected = 0;
    // Fill the listener's queue: a connection occupies a place in it even after its client has closed.
    while ((fd = control::connect_local(name, 0)) >= 0 && connected < 100000) {
        EXPECT_EQ(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
        close(fd);
        ++connected;
    }
    EXPECT_EQ(errno, EAGAIN);
    EXPECT_GT(connected, 0);
    close(listener);
}

TEST(Messages, RepliesSurviveEncodingAndDecoding) {
    control::SpawnReply reply;
    reply.error_class = 53;
    reply.text = "cannot start";
    reply.job = {0xfedcba9876543210u, 1234, 7};
    reply.codes = {0, 53, -1};
    control::SpawnReply back;
    ASSERT_TRUE(decode(encode(reply), back));
    EXPECT_EQ(back.job, reply.job);
    EXPECT_EQ(back.codes, reply.codes);
    EXPECT_EQ(back.text, reply.text);
    control::NameReply name_back;
    ASSERT_TRUE(decode(encode(control::NameReply{38, "no such name", "port"}), name_back));
    EXPECT_EQ(name_back.error_class, 38);
    EXPECT_EQ(name_back.port, "port");
}

}  // namespace
}  // namespace starling
