// Datagrams that a session receives: arbitrary bytes, and well-formed ones with false contents. The decoder must not read past them; the
// session must deliver only received bytes, and stay within its window.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>
#include <string>

#include "transport/network/session/session.h"

using namespace starling;
using namespace starling::network;

namespace {

constexpr uint64_t kTheirEpoch = 1000;

/// The process whose session receives the fuzzer's datagrams.
class Target final : public SessionEnvironment, public transport::PacketReceiver {
  public:
    Target() {
        self = {7, 0};
        key = 11;
        window = 128 * 1024;
        session = std::make_unique<Session>(*this, PeerName{7, 1}, 22, SessionReceiver{this, nullptr}, nullptr);
        session->set_path(0, {1, 9, 0}, 1472);
        session->set_path(1, {2, 9, 1}, 1472);
    }
    void send(Session&, const Route&, uint32_t, const iovec* parts, int count) override {
        for (int i = 0; i < count; ++i) touch(static_cast<const std::byte*>(parts[i].iov_base), parts[i].iov_len);
        ++sent;
    }
    void flush() override {}
    void deliver(void*, const transport::Packet& packet) override {
        if (packet.header.bytes > kMaxPayload || reinterpret_cast<uintptr_t>(packet.payload) % kGrain != 0) std::abort();
        touch(packet.payload, packet.header.bytes);
    }
    void handle_ports(Session&, const std::byte* payload, uint32_t bytes) override { touch(payload, bytes); }
    void unreachable(Session&) override {}
    uint64_t new_epoch() override { return ++epoch; }

    /// Reads every byte, so that the sanitizer checks them.
    void touch(const std::byte* bytes, size_t count) {
        for (size_t i = 0; i < count; ++i) sum = sum + static_cast<unsigned>(bytes[i]);
    }
    void commit_some(uint32_t bytes, uint64_t now) {
        packet::Header* const header = session->reserve(bytes);
        if (!header) return;
        std::memset(static_cast<void*>(header), 0, sizeof *header + bytes);
        session->commit(bytes, now);
        session->transmit(now);
    }

    std::unique_ptr<Session> session;
    uint64_t epoch = 0, sent = 0;
    volatile unsigned sum = 0;
};

/// The bytes of the fuzzer's input that describe one datagram; the datagram's stream bytes follow them.
struct Recipe {
    uint8_t liar = 0;  ///< bits that select the fields taken from the input instead of being correct
    uint8_t flags = 0;
    uint8_t ranges = 0;
    uint8_t stream_words = 0;
    uint32_t offset = 0;
    uint32_t ack = 0;
    uint32_t echo = 0;
    uint32_t number = 0;
    uint16_t window = 0;
    uint8_t epoch = 0, target_epoch = 0;
    uint8_t commit = 0, pause = 0;
    uint16_t packet_bytes = 0;  ///< payload length that the first packet claims
    uint32_t range_words[2] = {};
};

/// Makes the datagram of a recipe. Its stream is taken from the rest of the input. Returns the number of bytes taken.
size_t build(const Recipe& recipe, const Target& target, const uint8_t* data, size_t size, std::string& out) {
    DatagramHeader header{};
    header.magic = DatagramHeader::kMagic;
    header.version = DatagramHeader::kVersion;
    header.flags = recipe.liar & 1 ? recipe.flags : recipe.flags & datagram_flag::kAll;
    header.key = 11;
    header.job = 7;
    header.rank = 1;
    header.epoch = recipe.liar & 2 ? recipe.epoch : kTheirEpoch;
    header.target_epoch = recipe.liar & 4 ? recipe.target_epoch : target.session->epoch();
    header.offset = recipe.liar & 8 ? recipe.offset : recipe.offset % 2048 * kGrain;
    header.ack = recipe.liar & 16 ? recipe.ack : recipe.ack % 512 * kGrain;
    header.number = recipe.number;
    header.echo = recipe.liar & 32 ? recipe.echo : recipe.echo % 64;
    header.window = recipe.window;
    header.ranges = static_cast<uint8_t>(recipe.ranges % 3);
    AckRange ranges[2];
    uint32_t at = kGrain;
    for (int i = 0; i < header.ranges; ++i) {
        const uint32_t word = recipe.range_words[i];
        ranges[i] = recipe.liar & 64 ? AckRange{word >> 16, word & 0xffff}
                                     : AckRange{at + (word >> 16) % 64 * kGrain, (word % 64 + 1) * kGrain};
        at = ranges[i].start + ranges[i].length + kGrain;
    }
    std::string stream(reinterpret_cast<const char*>(data), std::min<size_t>(size, recipe.stream_words * kGrain));
    const size_t used = stream.size();
    stream.resize((used + kGrain - 1) / kGrain * kGrain);
    if (stream.size() >= sizeof(packet::Header) && !(recipe.liar & 128)) {
        const uint32_t claimed = recipe.packet_bytes;
        std::memcpy(stream.data() + offsetof(packet::Header, bytes), &claimed, sizeof claimed);
    }
    const Introduction introduction{22};
    out.assign(reinterpret_cast<const char*>(&header), sizeof header);
    if (header.flags & datagram_flag::kIntroduce) out.append(reinterpret_cast<const char*>(&introduction), sizeof introduction);
    out.append(reinterpret_cast<const char*>(ranges), header.ranges * sizeof(AckRange));
    out += stream;
    const auto bytes = static_cast<uint32_t>(out.size());
    std::memcpy(out.data() + offsetof(DatagramHeader, bytes), &bytes, sizeof bytes);
    return used;
}

/// Passes the bytes to the session as a socket would: aligned, and with nothing readable after them.
void take(Target& target, const std::string& bytes, uint64_t now) {
    const auto copy = std::make_unique<std::byte[]>(bytes.size());
    std::memcpy(copy.get(), bytes.data(), bytes.size());
    Datagram datagram;
    if (!decode(copy.get(), bytes.size(), datagram)) return;
    target.session->receive(datagram, static_cast<int>(now / kMillisecond % 3) - 1, nullptr, now);
    target.session->transmit(now);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    Target target;
    uint64_t now = kSecond;
    take(target, std::string(reinterpret_cast<const char*>(data), size), now);
    while (size >= sizeof(Recipe)) {
        Recipe recipe;
        std::memcpy(&recipe, data, sizeof recipe);
        data += sizeof recipe, size -= sizeof recipe;
        if (recipe.commit) target.commit_some(recipe.commit * 37u, now);
        std::string datagram;
        const size_t used = build(recipe, target, data, size, datagram);
        data += used, size -= used;
        take(target, datagram, now);
        now += recipe.pause * kMillisecond;
        if (target.session->deadline() <= now) target.session->on_timer(now);
        if (target.session->dead()) target.session->revive(22, {&target, nullptr}, nullptr);
    }
    // Whatever the session received, its timers must end when nothing more arrives.
    for (int i = 0; i < 200 && target.session->deadline() != UINT64_MAX; ++i) {
        now = std::max(now, target.session->deadline());
        target.session->on_timer(now);
    }
    if (target.session->deadline() <= now) std::abort();
    return 0;
}

namespace {
std::string one(Recipe recipe, const std::string& stream) {
    recipe.stream_words = static_cast<uint8_t>(stream.size() / kGrain);
    return std::string(reinterpret_cast<const char*>(&recipe), sizeof recipe) + stream;
}
}  // namespace

/// Returns well-formed inputs, which the replay driver mutates.
const std::string* fuzz_seeds(size_t& count) {
    static const std::string seeds[] = {
        one({.number = 1, .window = 512, .packet_bytes = 8}, std::string(40, 'a')) +
            one({.offset = 5, .number = 2, .window = 512, .packet_bytes = 24}, std::string(56, 'b')),
        one({.offset = 5, .number = 1, .window = 512, .packet_bytes = 8}, std::string(40, 'l')) +
            one({.offset = 15, .number = 2, .window = 512, .packet_bytes = 8}, std::string(40, 'm')) +
            one({.number = 3, .window = 512, .packet_bytes = 8}, std::string(40, 'f')),
        one({.window = 512, .commit = 10}, "") +
            one({.ranges = 2, .echo = 1, .window = 512, .commit = 20, .range_words = {1, 2}}, "") +
            one({.ack = 50, .echo = 2, .window = 512, .pause = 20}, ""),
        one({.number = 1, .window = 512, .packet_bytes = 500}, std::string(40, 'x')) +
            one({.offset = 5, .number = 2, .window = 512, .packet_bytes = 60000}, std::string(496, 'y')),
        one({.liar = 6, .epoch = 200, .target_epoch = 1, .commit = 3}, std::string(40, 'z')),
    };
    count = std::size(seeds);
    return seeds;
}
