// The pure parts of the tree of daemons: host sets, handshake, sealed frames, messages, outboxes.
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "launch/tree/frame.h"
#include "launch/tree/handshake.h"
#include "launch/tree/messages.h"
#include "launch/tree/outbox.h"

namespace starling::launch {
namespace {

HostSet random_set(std::mt19937& random, std::set<TreeHostId>& same) {
    std::vector<TreeHostId> hosts;
    same.clear();
    for (size_t n = random() % 20; n > 0; --n) {
        const TreeHostId first = random() % 60;
        for (TreeHostId host = first; host < first + random() % 6; ++host) hosts.push_back(host);
    }
    same.insert(hosts.begin(), hosts.end());
    return HostSet::of(hosts);
}

std::vector<TreeHostId> list_of(const std::set<TreeHostId>& set) { return {set.begin(), set.end()}; }

TEST(HostSet, BehavesAsASet) {
    std::mt19937 random(1);
    for (int round = 0; round < 3000; ++round) {
        std::set<TreeHostId> a, b;
        const HostSet x = random_set(random, a), y = random_set(random, b);
        EXPECT_EQ(x.list(), list_of(a));
        EXPECT_EQ(x.size(), a.size());
        HostSet sum = x, rest = x;
        sum.add(y);
        rest.remove(y);
        std::set<TreeHostId> sum_of = a, rest_of = a, both_of;
        sum_of.insert(b.begin(), b.end());
        for (const TreeHostId host : b) {
            rest_of.erase(host);
            if (a.contains(host)) both_of.insert(host);
        }
        EXPECT_EQ(sum.list(), list_of(sum_of));
        EXPECT_EQ(rest.list(), list_of(rest_of));
        EXPECT_EQ(x.intersection(y).list(), list_of(both_of));
        for (TreeHostId host = 0; host < 70; ++host) EXPECT_EQ(x.contains(host), a.contains(host));
        // Equal sets have equal runs: runs never touch.
        EXPECT_EQ(sum, HostSet::of(list_of(sum_of)));
        HostSet again;
        EXPECT_TRUE(decode(encode(sum), again));
        EXPECT_EQ(again, sum);
    }
}

TEST(HostSet, RefusesMalformedSets) {
    HostSet out;
    for (const std::vector<uint32_t>& runs :
         {std::vector<uint32_t>{5, 5}, {6, 5}, {1, 3, 3, 4}, {5, 6, 1, 2}, {0, kMostHosts + 1}, {0, 2, 1, 4}}) {
        Writer bytes;
        bytes.number(static_cast<uint32_t>(runs.size() / 2));
        for (const uint32_t n : runs) bytes.number(n);
        EXPECT_FALSE(decode(bytes.view(), out));
    }
    EXPECT_FALSE(decode(Writer().number(1u << 30).take(), out));
}

// Runs both ends of a handshake over a wire that `spoil` may change. Returns whether both ends proved that they hold the key.
bool shake(
    Handshake& child, Handshake& parent, size_t step, const std::function<void(std::string&)>& spoil = [](std::string&) {}) {
    std::string up = child.opening(), down;
    auto child_state = Handshake::HandshakeState::waiting, parent_state = child_state;
    spoil(up);
    while (!up.empty() || !down.empty()) {
        std::string_view part = std::string_view(up).substr(0, step);
        const size_t given = part.size();
        std::string answer;
        if (parent_state == Handshake::HandshakeState::waiting) parent_state = parent.feed(part, answer);
        up.erase(0, given);
        if (!answer.empty()) spoil(answer);
        down += answer;
        part = std::string_view(down).substr(0, step);
        const size_t taken = part.size();
        answer.clear();
        if (child_state == Handshake::HandshakeState::waiting) child_state = child.feed(part, answer);
        down.erase(0, taken);
        if (!answer.empty()) spoil(answer);
        up += answer;
    }
    return child_state == Handshake::HandshakeState::proved && parent_state == Handshake::HandshakeState::proved;
}

TEST(Handshake, SucceedsWithTheSameKeyOnly) {
    const TreeKey key = make_key();
    for (const size_t step : {1, 7, 1000}) {
        Handshake child(Handshake::HandshakeRole::child, key), parent(Handshake::HandshakeRole::parent, key);
        ASSERT_TRUE(shake(child, parent, step));
        EXPECT_EQ(child.key_to_send(), parent.key_to_receive());
        EXPECT_EQ(child.key_to_receive(), parent.key_to_send());
        EXPECT_NE(child.key_to_send(), child.key_to_receive());
    }
    TreeKey other = key;
    other.bytes[31] ^= 1;
    Handshake child(Handshake::HandshakeRole::child, key), parent(Handshake::HandshakeRole::parent, other);
    EXPECT_FALSE(shake(child, parent, 1000));
}

TEST(Handshake, EveryChangedBitIsDetected) {
    const TreeKey key = make_key();
    const size_t bits = 8 * (Handshake::kHello + Handshake::kNonce + 2 * Handshake::kProof);
    for (size_t bit = 0; bit < bits; ++bit) {
        Handshake child(Handshake::HandshakeRole::child, key), parent(Handshake::HandshakeRole::parent, key);
        size_t seen = 0;
        EXPECT_FALSE(shake(child, parent, 1000, [&](std::string& bytes) {
            if (bit >= seen && bit < seen + 8 * bytes.size()) {
                bytes[(bit - seen) / 8] = static_cast<char>(bytes[(bit - seen) / 8] ^ (1 << (bit - seen) % 8));
            }
            seen += 8 * bytes.size();
        })) << bit;
    }
}

TEST(Handshake, ReplayedMessagesAreRefused) {
    // A stranger replays the recorded messages of a daemon; the parent's new nonce makes them invalid.
    const TreeKey key = make_key();
    std::vector<std::string> heard;
    Handshake child(Handshake::HandshakeRole::child, key), parent(Handshake::HandshakeRole::parent, key);
    ASSERT_TRUE(shake(child, parent, 1000, [&](std::string& bytes) { heard.push_back(bytes); }));
    Handshake again(Handshake::HandshakeRole::parent, key);
    std::string answer;
    std::string_view hello(heard[0]), proof(heard[2]);
    EXPECT_EQ(again.feed(hello, answer), Handshake::HandshakeState::waiting);
    EXPECT_EQ(again.feed(proof, answer), Handshake::HandshakeState::refused);
    // A stranger sends the parent's own proof back to the parent.
    Handshake mirror(Handshake::HandshakeRole::parent, key);
    std::string challenge;
    hello = heard[0];
    mirror.feed(hello, challenge);
    std::string_view reflected = std::string_view(challenge).substr(Handshake::kNonce);
    EXPECT_EQ(mirror.feed(reflected, answer), Handshake::HandshakeState::refused);
}

TEST(Handshake, BothEncryptOrNeither) {
    const TreeKey key = make_key();
    const TreeCredentials plain(key), encrypting(key, false, true);
    Handshake child(Handshake::HandshakeRole::child, encrypting), parent(Handshake::HandshakeRole::parent, encrypting);
    ASSERT_TRUE(shake(child, parent, 1000));
    EXPECT_TRUE(child.key_to_send().encrypt);
    EXPECT_EQ(child.key_to_send(), parent.key_to_receive());
    EXPECT_EQ(child.key_to_receive(), parent.key_to_send());
    for (const bool up : {false, true}) {
        Handshake one(Handshake::HandshakeRole::child, up ? encrypting : plain),
            other(Handshake::HandshakeRole::parent, up ? plain : encrypting);
        EXPECT_FALSE(shake(one, other, 1000));
        EXPECT_NE(one.why().find(up ? "it does not encrypt" : "it encrypts"), std::string::npos) << one.why();
        EXPECT_NE(one.why().find("set STARLING_ENCRYPTION"), std::string::npos) << one.why();
    }
}

TEST(Handshake, AnAttackerCannotTurnEncryptionOff) {
    // A parent that encrypts never computes the proof of a parent without encryption, whatever the child sends.
    const TreeKey key = make_key();
    Handshake child(Handshake::HandshakeRole::child, TreeCredentials(key)),
        parent(Handshake::HandshakeRole::parent, TreeCredentials(key, false, true));
    std::string challenge, answer;
    const std::string opening = child.opening();
    std::string_view bytes(opening);
    EXPECT_EQ(parent.feed(bytes, challenge), Handshake::HandshakeState::waiting);
    bytes = challenge;
    EXPECT_EQ(child.feed(bytes, answer), Handshake::HandshakeState::refused);
    EXPECT_EQ(answer, "");
}

class Frames : public testing::TestWithParam<bool> {
  protected:
    FrameKey key(uint8_t first) const { return {{first, 2, 3}, GetParam()}; }
};
INSTANTIATE_TEST_SUITE_P(Sealed, Frames, testing::Values(false, true),
                         [](const auto& encrypted) { return encrypted.param ? "AndEncrypted" : "Only"; });

TEST_P(Frames, ArriveWholeHoweverTheStreamIsCut) {
    const FrameKey key = this->key(1);
    for (const size_t step : {size_t{1}, size_t{5}, size_t{100000}}) {
        FrameSealer sealer(key);
        FrameOpener opener(key);
        std::string stream;
        std::vector<std::string> bodies{"", "a", std::string(3000, 'x'), "end"};
        for (const std::string& body : bodies) stream += sealer.seal(TreeFrameKind::message, body);
        std::vector<std::string> got;
        for (size_t at = 0; at < stream.size(); at += step) {
            std::string_view part = std::string_view(stream).substr(at, step);
            while (!part.empty()) {
                TreeFrameKind kind{};
                std::string body;
                const auto result = opener.feed(part, kind, body);
                ASSERT_NE(result, FrameOpener::FrameOpenResult::garbage);
                if (result == FrameOpener::FrameOpenResult::frame) got.push_back(body);
            }
        }
        EXPECT_EQ(got, bodies);
    }
}

// Returns the number of frames in `stream` that are accepted.
size_t frames_taken(std::string_view stream, const FrameKey& key) {
    FrameOpener opener(key);
    size_t n = 0;
    while (!stream.empty()) {
        TreeFrameKind kind{};
        std::string body;
        const auto result = opener.feed(stream, kind, body);
        if (result == FrameOpener::FrameOpenResult::garbage) break;
        n += result == FrameOpener::FrameOpenResult::frame;
    }
    return n;
}

TEST_P(Frames, ChangedReplayedAndMissingFramesAreDetected) {
    const FrameKey key = this->key(9);
    FrameSealer sealer(key);
    const std::string a = sealer.seal(TreeFrameKind::message, "first"), b = sealer.seal(TreeFrameKind::message, "other");
    EXPECT_EQ(frames_taken(a + b, key), 2u);
    EXPECT_EQ(frames_taken(a + a, key), 1u);
    EXPECT_EQ(frames_taken(b, key), 0u);
    EXPECT_EQ(frames_taken(a + b, this->key(8)), 0u);
    for (size_t bit = 0; bit < 8 * a.size(); ++bit) {
        std::string changed = a;
        changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << bit % 8));
        EXPECT_EQ(frames_taken(changed + b, key), 0u) << bit;
    }
}

TEST_P(Frames, TruncatedFramesAreNotAccepted) {
    const FrameKey key = this->key(9);
    const std::string frame = FrameSealer(key).seal(TreeFrameKind::message, "something to be said");
    for (size_t length = 0; length < frame.size(); ++length)
        EXPECT_EQ(frames_taken(frame.substr(0, length), key), 0u) << length;
    // The last byte of the first frame is missing, so the second frame's first byte takes its place.
    FrameSealer sealer(key);
    const std::string first = sealer.seal(TreeFrameKind::message, "first"),
                      second = sealer.seal(TreeFrameKind::message, "second");
    EXPECT_EQ(frames_taken(first.substr(0, first.size() - 1) + second, key), 0u);
}

TEST_P(Frames, PartsFormOneBody) {
    const FrameKey key = this->key(9);
    FrameSealer whole(key), parts(key);
    EXPECT_EQ(whole.seal(TreeFrameKind::message, "abcdef"), parts.seal(TreeFrameKind::message, "a", "bcd", "ef"));
    if (key.encrypt) return;
    const std::string head = parts.head(TreeFrameKind::message, 6);
    EXPECT_EQ(whole.seal(TreeFrameKind::message, "abcdef"), head + "abcdef" + parts.seal_of(head, "ab", "", "cdef"));
}

TEST_P(Frames, EncryptedFramesHideTheirText) {
    const std::string secret(100, 's');
    FrameSealer sealer(key(9));
    const std::string first = sealer.seal(TreeFrameKind::message, secret), second = sealer.seal(TreeFrameKind::message, secret);
    EXPECT_EQ(first.find("ssss") != std::string::npos, !GetParam());
    EXPECT_NE(first, second);
    // A key with the other encryption setting opens no frame.
    FrameKey other = key(9);
    other.encrypt = !other.encrypt;
    EXPECT_EQ(frames_taken(first, other), 0u);
}

std::string hex(std::string_view bytes) {
    std::string text;
    for (const char byte : bytes) {
        text.push_back("0123456789abcdef"[static_cast<uint8_t>(byte) >> 4]);
        text.push_back("0123456789abcdef"[byte & 15]);
    }
    return text;
}

// Test vectors from another implementation of RFC 8439 (OpenSSL 3.0, by Python's cryptography) prove that the frames follow the standard.
TEST_P(Frames, EncryptionFollowsRfc8439) {
    FrameSealer sealer(key(1));
    const std::string first = hex(sealer.seal(TreeFrameKind::message, "first")),
                      second = hex(sealer.seal(TreeFrameKind::message, "first"));
    if (GetParam()) {
        EXPECT_EQ(first, "05000000050000001926f6d2a1631409df1682e582000a785f9821addd");
        EXPECT_EQ(second, "05000000050000002d13e49a8f3d3b620c8cfb16d4497bf8204132f0bb");
    } else {
        EXPECT_EQ(first, "05000000050000006669727374d272e6aca095f2240d97a14c429341a1");
    }
}

TEST(Messages, CarryOnlyThePartsOfTheirReceivers) {
    Content content;
    content.origin = 3;
    content.number = 17;
    content.storage = "sharedABCD";
    const std::string_view all(content.storage);
    content.payload = all.substr(0, 6);
    for (TreeHostId host = 1; host <= 4; ++host) content.parts.emplace_back(host, all.substr(5 + host, 1));
    const MessageHead head{99, HostSet::of({2, 4})};
    const std::string bytes = encode_head(head, content) + std::string(content.payload) + encode_tail(head, content);
    MessageHead got_head;
    Content got;
    ASSERT_TRUE(decode_message(bytes, got_head, got));
    EXPECT_EQ(got_head.edge_number, 99u);
    EXPECT_EQ(got_head.to, head.to);
    EXPECT_EQ(got.origin, 3u);
    EXPECT_EQ(got.number, 17u);
    EXPECT_EQ(got.payload, "shared");
    ASSERT_EQ(got.parts.size(), 2u);
    EXPECT_EQ(got.parts[0].second, "B");
    EXPECT_EQ(got.parts[1].second, "D");
    for (size_t length = 0; length < bytes.size(); ++length)
        EXPECT_FALSE(decode_message(bytes.substr(0, length), got_head, got)) << length;
    EXPECT_FALSE(decode_message(bytes + "x", got_head, got));
}

std::shared_ptr<Content> numbered(uint64_t number, Urgency urgency = Urgency::control, size_t bytes = 1) {
    auto content = std::make_shared<Content>();
    content->number = number;
    content->urgency = urgency;
    content->storage = std::string(bytes, 'x');
    content->payload = content->storage;
    return content;
}

TEST(TreeOutbox, KeepsMessagesUntilAllReceiversAcknowledge) {
    TreeOutbox box;
    int receipts = 0;
    for (uint64_t n = 1; n <= 4; ++n)
        box.push({numbered(n), HostSet::of({1, 2}), DeliveryReceipt(nullptr, [&](void*) { ++receipts; })});
    MessageHead head;
    for (uint64_t n = 1; n <= 3; ++n) {
        EXPECT_EQ(box.next(head)->number, n);
        EXPECT_EQ(head.edge_number, n);
    }
    EXPECT_FALSE(box.done(Urgency::control, 4, 4)) << "the message has never been sent";
    EXPECT_FALSE(box.done(Urgency::bulk, 1, 1));
    EXPECT_TRUE(box.done(Urgency::control, 2, 2));
    EXPECT_TRUE(box.done(Urgency::control, 2, 2)) << "a report may be repeated after a connection broke";
    EXPECT_EQ(receipts, 1);
    box.restart();
    std::vector<uint64_t> again;
    while (const auto content = box.next(head)) again.push_back(content->number);
    EXPECT_EQ(again, (std::vector<uint64_t>{1, 3, 4}));
    EXPECT_EQ(head.edge_number, 4u);
    // One of the receivers moves to another branch; the message stays for the other receiver.
    const auto taken = box.extract(HostSet::one(2));
    ASSERT_EQ(taken.size(), 3u);
    EXPECT_EQ(taken[0].to, HostSet::one(2));
    EXPECT_TRUE(box.done(Urgency::control, 1, 4));
    EXPECT_TRUE(box.empty());
    EXPECT_EQ(receipts, 1) << "the second receiver has not received the messages";
}

TEST(TreeOutbox, BulkMessagesWaitForTheirReceivers) {
    TreeOutbox box;
    const size_t each = TreeOutbox::kBulkWindow / 4;
    for (uint64_t n = 1; n <= 10; ++n) box.push({numbered(n, Urgency::bulk, each), HostSet::one(1), nullptr});
    box.push({numbered(11), HostSet::one(1), nullptr});
    MessageHead head;
    EXPECT_EQ(box.next(head)->number, 11u) << "control messages overtake";
    int sent = 0;
    while (box.next(head)) ++sent;
    EXPECT_EQ(sent, 4);
    EXPECT_TRUE(box.done(Urgency::bulk, 1, 2));
    while (box.next(head)) ++sent;
    EXPECT_EQ(sent, 6);
}

}  // namespace
}  // namespace starling::launch
