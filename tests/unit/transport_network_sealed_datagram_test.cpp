// Sealed datagrams: which processes can open them, and how changed, replayed or forged ones are rejected.
#include "transport/network/crypto/sealed_datagram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "mpi.h"

namespace starling::network {
namespace {

using Opened = DatagramLock::Opened;
using Wire = std::vector<std::byte>;

constexpr PeerName kHere{70, 3}, kThere{71, 5};
constexpr uint64_t kKey = 99;

/// Returns a cipher with AES, if this machine has it, or one without.
const Cipher& cipher(bool aes = true) {
    static std::unique_ptr<Cipher> loaded[2];
    std::unique_ptr<Cipher>& one = loaded[aes];
    if (!one) {
        EXPECT_EQ(Cipher::load(one), MPI_SUCCESS) << failure_text();
        one->has_aes &= aes;
    }
    return *one;
}

job::NetworkSecret secret(uint8_t first) {
    job::NetworkSecret made;
    std::iota(std::begin(made.bytes), std::end(made.bytes), first);
    return made;
}

SealKey pair_of(const PeerName& a, const PeerName& b) {
    return pair_key(cipher(), a, secret(static_cast<uint8_t>(a.job)), b, secret(static_cast<uint8_t>(b.job)));
}

DatagramLock lock(const PeerName& self, const PeerName& peer, bool aes = true) {
    return {cipher(aes), pair_of(self, peer), self, peer};
}

Wire datagram(const PeerName& from, const PeerName& to, const std::string& text, uint64_t epoch = 1000) {
    DatagramHeader header{};
    header.magic = DatagramHeader::kMagic;
    header.version = DatagramHeader::kVersion;
    header.bytes = static_cast<uint32_t>(sizeof header + text.size());
    header.key = kKey;
    header.job = from.job;
    header.rank = from.rank;
    header.target_rank = to.rank;
    header.epoch = epoch;
    Wire made(header.bytes + kSealBytes);
    std::memcpy(made.data(), &header, sizeof header);
    std::memcpy(made.data() + sizeof header, text.data(), text.size());
    return made;
}

Wire sealed(DatagramLock& lock, const PeerName& from, const PeerName& to, const std::string& text, uint64_t epoch = 1000) {
    Wire made = datagram(from, to, text, epoch);
    lock.seal(made.data(), static_cast<uint32_t>(made.size() - kSealBytes));
    return made;
}

Opened open(DatagramLock& lock, Wire wire, bool* is_new = nullptr) {
    bool fresh = false;
    const Opened result = lock.open(wire.data(), static_cast<uint32_t>(wire.size()), fresh);
    if (is_new) *is_new = fresh;
    return result;
}

TEST(Seal, OpeningRestoresTheDatagram) {
    DatagramLock here = lock(kHere, kThere), there = lock(kThere, kHere);
    for (const size_t bytes : {0, 8, 1000, 8800}) {
        const std::string text(bytes, 's');
        Wire wire = sealed(here, kHere, kThere, text);
        ASSERT_TRUE(may_be_sealed(wire.data(), static_cast<uint32_t>(wire.size()), kKey, kThere.rank));
        EXPECT_EQ(sender_of(wire.data()), kHere);
        bool is_new = false;
        ASSERT_EQ(there.open(wire.data(), static_cast<uint32_t>(wire.size()), is_new), Opened::yes);
        EXPECT_EQ(is_new, bytes == 0);
        wire.resize(wire.size() - kSealBytes);
        Wire plain = datagram(kHere, kThere, text);
        plain.resize(plain.size() - kSealBytes);
        EXPECT_EQ(wire, plain);
        Datagram taken;
        EXPECT_TRUE(decode(wire.data(), wire.size(), taken));
    }
}

TEST(Seal, TextAndHeaderAreUnreadable) {
    DatagramLock here = lock(kHere, kThere);
    const std::string text(64, 'Q');
    const Wire plain = datagram(kHere, kThere, text, 0x1122334455667788),
               wire = sealed(here, kHere, kThere, text, 0x1122334455667788);
    const std::string shown(reinterpret_cast<const char*>(wire.data()), wire.size());
    EXPECT_EQ(shown.find("QQQQ"), std::string::npos);
    EXPECT_EQ(shown.find(std::string("\x88\x77\x66\x55", 4)), std::string::npos);
    EXPECT_EQ(std::memcmp(plain.data() + 8, wire.data() + 8, kClearHead - 8), 0) << "key, job and ranks have to be read";
    EXPECT_NE(sealed(here, kHere, kThere, text), sealed(here, kHere, kThere, text)) << "two seals of one text must differ";
}

TEST(Seal, EveryByteIsProtected) {
    for (const bool aes : {false, true}) {
        DatagramLock here = lock(kHere, kThere, aes), there = lock(kThere, kHere, aes);
        ASSERT_EQ(open(there, sealed(here, kHere, kThere, "first   ")), Opened::yes);
        ASSERT_EQ(open(here, sealed(there, kThere, kHere, "answer  ")), Opened::yes);
        const Wire wire = sealed(here, kHere, kThere, "a text that is to arrive as it is, or not at all");
        for (size_t at = 0; at < wire.size(); ++at) {
            for (int bit = 0; bit < 8; ++bit) {
                Wire changed = wire;
                changed[at] ^= static_cast<std::byte>(1 << bit);
                ASSERT_EQ(open(there, changed), Opened::unauthenticated) << "byte " << at << " bit " << bit;
            }
        }
        EXPECT_EQ(open(there, wire), Opened::yes) << "the refused datagrams must not affect the good one";
    }
}

// A process that learns that its peer can open AES uses it; datagrams in transit under the other cipher are opened too.
TEST(Seal, AesIsUsedIfBothSidesHaveIt) {
    const auto version = [](const Wire& wire) { return static_cast<uint8_t>(wire[offsetof(DatagramHeader, version)]); };
    for (const bool here_has : {false, true}) {
        for (const bool there_has : {false, true}) {
            DatagramLock here = lock(kHere, kThere, here_has), there = lock(kThere, kHere, there_has);
            const Wire first = sealed(here, kHere, kThere, "first"), late = sealed(here, kHere, kThere, "late");
            EXPECT_EQ(version(first), kSealedVersion[0]);
            ASSERT_EQ(open(there, first), Opened::yes);
            const bool both = cipher().has_aes && here_has && there_has;
            const Wire answer = sealed(there, kThere, kHere, "answer");
            EXPECT_EQ(version(answer), kSealedVersion[both]);
            ASSERT_EQ(open(here, answer), Opened::yes);
            for (int i = 0; i < 3; ++i) {
                const Wire more = sealed(here, kHere, kThere, "more");
                EXPECT_EQ(version(more), kSealedVersion[both]);
                ASSERT_EQ(open(there, more), Opened::yes);
                if (i == 1) { EXPECT_EQ(open(there, late), Opened::yes); }
            }
            EXPECT_EQ(open(there, late), Opened::stale);
            EXPECT_EQ(open(there, first), Opened::stale);
            // An opened datagram is plain, whichever cipher sealed it.
            Wire wire = sealed(here, kHere, kThere, "sixteen bytes...");
            bool is_new = false;
            ASSERT_EQ(there.open(wire.data(), static_cast<uint32_t>(wire.size()), is_new), Opened::yes);
            Datagram taken;
            EXPECT_TRUE(decode(wire.data(), wire.size() - kSealBytes, taken));
        }
    }
}

TEST(Seal, TruncatedAndExtendedDatagramsAreRefused) {
    DatagramLock here = lock(kHere, kThere), there = lock(kThere, kHere);
    const Wire wire = sealed(here, kHere, kThere, "sixteen bytes....");
    for (size_t bytes = 0; bytes <= wire.size() + 64; ++bytes) {
        Wire cut = wire;
        cut.resize(bytes);
        const auto length = static_cast<uint32_t>(bytes);
        ASSERT_EQ(may_be_sealed(cut.data(), length, kKey, kThere.rank), bytes == wire.size()) << bytes;
        if (bytes < sizeof(DatagramHeader) + kSealBytes || bytes == wire.size()) continue;
        std::memcpy(cut.data() + offsetof(DatagramHeader, bytes), &length, sizeof length);
        ASSERT_EQ(open(there, cut), Opened::unauthenticated) << bytes;
    }
    EXPECT_FALSE(may_be_sealed(wire.data(), static_cast<uint32_t>(wire.size()), kKey + 1, kThere.rank));
    EXPECT_FALSE(may_be_sealed(wire.data(), static_cast<uint32_t>(wire.size()), kKey, kThere.rank + 1));
    const Wire plain = datagram(kHere, kThere, std::string(64, 'p'));
    EXPECT_FALSE(may_be_sealed(plain.data(), static_cast<uint32_t>(plain.size() - kSealBytes), kKey, kThere.rank));
}

TEST(Seal, ReplayedDatagramsAreRefused) {
    DatagramLock here = lock(kHere, kThere), there = lock(kThere, kHere);
    std::vector<Wire> sent;
    for (int i = 0; i < 200; ++i) sent.push_back(sealed(here, kHere, kThere, "message " + std::to_string(i)));
    std::mt19937_64 random(5);
    std::shuffle(sent.begin(), sent.end(), random);
    for (const Wire& wire : sent) {
        EXPECT_EQ(open(there, wire), Opened::yes);
        EXPECT_EQ(open(there, wire), Opened::stale);
    }
    for (const Wire& wire : sent) EXPECT_EQ(open(there, wire), Opened::stale);
}

TEST(Seal, ReflectedDatagramsAreRefused) {
    DatagramLock here = lock(kHere, kThere), there = lock(kThere, kHere);
    const Wire wire = sealed(here, kHere, kThere, "there");
    EXPECT_EQ(open(here, wire), Opened::unauthenticated) << "a datagram that is sent back to its sender is refused";
    Wire turned = wire;
    DatagramHeader header = {};
    std::memcpy(&header, turned.data(), sizeof header);
    header.job = kThere.job, header.rank = kThere.rank, header.target_rank = kHere.rank;
    std::memcpy(turned.data(), &header, kClearHead);
    EXPECT_EQ(open(here, turned), Opened::unauthenticated) << "also with exchanged sender and receiver";
    EXPECT_EQ(open(there, wire), Opened::yes);
}

TEST(Seal, OnlyThePairHasTheKey) {
    DatagramLock here = lock(kHere, kThere);
    const Wire wire = sealed(here, kHere, kThere, "for one alone");
    DatagramLock other_rank = lock({71, 6}, kHere), other_job = lock({72, 5}, kHere), other_sender = lock(kThere, {70, 4});
    EXPECT_EQ(open(other_rank, wire), Opened::unauthenticated);
    EXPECT_EQ(open(other_job, wire), Opened::unauthenticated);
    EXPECT_EQ(open(other_sender, wire), Opened::unauthenticated);
    // Try keys of jobs that have the right ids, where one of the two has another secret.
    for (const bool own : {false, true}) {
        const job::NetworkSecret theirs = secret(70), mine = secret(71), wrong = secret(200);
        const SealKey pair = pair_key(cipher(), kThere, own ? wrong : mine, kHere, own ? theirs : wrong);
        DatagramLock guess(cipher(), pair, kThere, kHere);
        EXPECT_EQ(open(guess, wire), Opened::unauthenticated);
    }
    EXPECT_EQ(pair_of(kHere, kThere), pair_of(kThere, kHere));
    EXPECT_NE(pair_of(kHere, kThere), pair_of(kHere, {71, 6}));
}

// No nonce is used twice with a key: each DatagramLock has a random salt, and its datagrams have increasing numbers.
TEST(Seal, NoNonceIsUsedTwiceWithAKey) {
    std::set<std::pair<uint64_t, uint64_t>> used;
    for (int meeting = 0; meeting < 50; ++meeting) {
        DatagramLock here = lock(kHere, kThere);  // the lock for a job that was forgotten and met again
        for (int i = 0; i < 20; ++i) {
            const Wire wire = sealed(here, kHere, kThere, "the same text, sent again");
            SealTrailer trailer;
            std::memcpy(&trailer, wire.data() + wire.size() - sizeof trailer, sizeof trailer);
            EXPECT_TRUE(used.insert({trailer.salt, trailer.number}).second);
        }
    }
}

TEST(Seal, ARestartedPeerIsAcceptedAndItsOldDatagramsAreNot) {
    DatagramLock first = lock(kHere, kThere), second = lock(kHere, kThere), there = lock(kThere, kHere);
    const Wire early = sealed(first, kHere, kThere, "early", 1000), late = sealed(first, kHere, kThere, "late", 1000);
    bool is_new = false;
    EXPECT_EQ(open(there, early, &is_new), Opened::yes);
    EXPECT_TRUE(is_new);
    const Wire anew = sealed(second, kHere, kThere, "anew", 2000);
    EXPECT_EQ(open(there, anew, &is_new), Opened::yes);
    EXPECT_TRUE(is_new);
    EXPECT_EQ(open(there, late), Opened::stale) << "the datagram is the predecessor's, whose epoch is earlier";
    EXPECT_EQ(open(there, early), Opened::stale);
    EXPECT_EQ(open(there, anew), Opened::stale) << "the received numbers are still known";
    EXPECT_EQ(open(there, sealed(second, kHere, kThere, "more", 2000), &is_new), Opened::yes);
    EXPECT_FALSE(is_new);
    Wire garbage = anew;
    garbage[garbage.size() - sizeof(SealTrailer)] ^= std::byte{1};  // changes the salt to one that no process uses
    EXPECT_EQ(open(there, garbage), Opened::unauthenticated);
    EXPECT_EQ(open(there, sealed(second, kHere, kThere, "still", 2000)), Opened::yes);
}

TEST(ReplayWindow, AgreesWithAPlainSet) {
    std::mt19937_64 random(11);
    for (const uint64_t stride : {2, 50, 3000, 9000}) {
        ReplayWindow window;
        std::set<uint64_t> come;
        uint64_t last = 0;
        for (int i = 0; i < 20000; ++i) {
            const uint64_t number = std::max<uint64_t>(last + random() % (2 * stride), stride) - stride + 1;
            const bool old = last >= ReplayWindow::kNumbers && number <= last - ReplayWindow::kNumbers;
            ASSERT_EQ(window.holds(number), old || come.count(number) != 0) << number << " after " << last;
            if (window.holds(number)) continue;
            window.add(number);
            come.insert(number);
            last = std::max(last, number);
            ASSERT_TRUE(window.holds(number));
        }
    }
}

TEST(Cipher, KeysDependOnEveryByteAndOnTheirUse) {
    const SealKey parent{{9}};
    const uint64_t one = 1, two = 2;
    const Bytes first[] = {bytes_of(one)}, second[] = {bytes_of(two)};
    const SealKey key = cipher().derive(bytes_of(parent), "use", first);
    EXPECT_EQ(key, cipher().derive(bytes_of(parent), "use", first));
    EXPECT_NE(key, cipher().derive(bytes_of(parent), "use", second));
    EXPECT_NE(key, cipher().derive(bytes_of(parent), "other use", first));
    EXPECT_NE(key, cipher().derive(bytes_of(SealKey{{8}}), "use", first));
    EXPECT_TRUE(cipher().equal(&one, &one, sizeof one));
    EXPECT_FALSE(cipher().equal(&one, &two, sizeof one));
}

}  // namespace
}  // namespace starling::network
