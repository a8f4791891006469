// TCP connections between two simulated MPI processes within one test program, over the loopback device.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "transport/network/tcp/tcp.h"

namespace starling::network {

using transport::Coverage;

inline uint32_t loopback(uint8_t last) { return htonl(0x7f000000u + last); }
inline TcpRail rail(uint8_t last) { return {loopback(last), ~0u}; }

/// Returns whether to encrypt: the tests run twice, without encryption and with STARLING_ENCRYPTION=on.
inline bool seal_pairs() {
    const char* const value = std::getenv("STARLING_ENCRYPTION");
    return value && std::string_view(value) == "on";
}
inline const Cipher* test_cipher() {
    static std::unique_ptr<Cipher> cipher;
    if (!cipher) { EXPECT_EQ(Cipher::load(cipher), 0) << failure_text(); }
    return cipher.get();
}

/// One simulated process: its Tcp object, its connection to the peer, and the events that the Tcp object reported.
struct Side {
    std::unique_ptr<Tcp> tcp;
    Connection* connection = nullptr;
    int opened = 0, failed = 0, ended = 0, broken = 0, rerouted = 0, room = 0;
    std::string failure;
    std::vector<std::string> frames;
    bool refuse_frames = false;
    std::function<void(const std::string&)> on_frame;
    std::function<void()> on_room, on_request;
    int paused = 0;

    struct Incoming {
        uint32_t generation = 0;
        std::vector<std::byte> memory;
        Coverage coverage;
        bool in_place = true;
    };
    std::map<uint32_t, Incoming> incoming;  ///< incoming messages, by request id
    int pieces = 0;
    std::vector<OutStream*> stranded;

    static Side& of(Connection& c) { return *static_cast<Side*>(c.user); }
    Incoming* find(const StreamFragment& piece) {
        const auto it = incoming.find(piece.serial);
        if (it == incoming.end() || it->second.generation != piece.generation) return nullptr;
        if (piece.offset + piece.bytes > it->second.memory.size()) return nullptr;
        return &it->second;
    }

    static TcpUpcalls upcalls() {
        TcpUpcalls u;
        u.opened = [](Connection& c) { ++of(c).opened; };
        u.failed = [](Connection& c) {
            ++of(c).failed;
            of(c).failure = failure_text();
        };
        u.ended = [](Connection& c) { ++of(c).ended; };
        u.broken = [](Connection& c) {
            ++of(c).broken;
            of(c).failure = failure_text();
        };
        u.frame = [](Connection& c, const std::byte* frame, size_t bytes) {
            Side& side = of(c);
            if (side.refuse_frames) return false;
            side.frames.emplace_back(reinterpret_cast<const char*>(frame), bytes);
            if (side.on_frame) side.on_frame(std::string(side.frames.back()));
            return true;
        };
        u.room = [](Connection& c) {
            ++of(c).room;
            if (of(c).on_room) of(c).on_room();
        };
        u.rerouted = [](Connection& c) { ++of(c).rerouted; };
        u.request_ack = [](Connection& c) {
            if (of(c).on_request) of(c).on_request();
        };
        u.paused = [](Connection& c) { ++of(c).paused; };
        u.target = [](Connection& c, const StreamFragment& piece, uint64_t done, uint64_t) -> std::byte* {
            Incoming* to = of(c).find(piece);
            return to && to->in_place ? to->memory.data() + piece.offset + done : nullptr;
        };
        u.unpack = [](Connection& c, const StreamFragment& piece, uint64_t done, const std::byte* data, uint64_t bytes) {
            if (Incoming* to = of(c).find(piece)) std::memcpy(to->memory.data() + piece.offset + done, data, bytes);
        };
        u.fragment = [](Connection& c, const StreamFragment& piece) {
            ++of(c).pieces;
            if (Incoming* to = of(c).find(piece)) to->coverage.add({piece.offset, piece.offset + piece.bytes});
        };
        u.stranded = [](OutStream& stream) { static_cast<Side*>(stream.source().user)->stranded.push_back(&stream); };
        return u;
    }

    SendResult send(const std::string& text) {
        const iovec part{const_cast<char*>(text.data()), text.size()};
        return connection->send(&part, 1);
    }
};

/// Describes a stream of `data` from `side`; the receiver has the memory of message `serial`.
inline OutStream::StreamSource source_of(Side& side, const std::vector<std::byte>& data, uint32_t serial, uint32_t generation) {
    OutStream::StreamSource source;
    source.serial = serial;
    source.generation = generation;
    source.bytes = data.size();
    source.memory = data.data();
    source.user = &side;
    return source;
}

struct Pair {
    Side low, high;  ///< the two sides: processes 1 and 2 of job 7
    TcpOptions options;

    explicit Pair(std::vector<TcpRail> rails = {rail(1)}, TcpOptions base = {}) : options(base) {
        if (seal_pairs()) options.cipher = test_cipher();
        const SealKey key{{1, 2, 3}};
        start(low, 1, rails);
        start(high, 2, rails);
        low.connection = &low.tcp->add({7, 2}, 1002, &low, nullptr, key);
        high.connection = &high.tcp->add({7, 1}, 1001, &high, nullptr, key);
    }
    void start(Side& side, uint32_t rank, const std::vector<TcpRail>& rails) {
        TcpOptions own = options;
        own.self = {7, rank};
        own.key = 1000 + rank;
        EXPECT_EQ(Tcp::create(own, Side::upcalls(), side.tcp), 0);
        side.tcp->set_rails(rails);
    }
    void poll() {
        low.tcp->poll(now_ns());
        high.tcp->poll(now_ns());
    }
    /// Polls both sides until the condition holds; returns false after 20 s.
    bool until(const std::function<bool()>& condition) {
        for (const uint64_t end = now_ns() + 20'000'000'000; now_ns() < end; poll())
            if (condition()) return true;
        return condition();
    }
    void polls(int count) {
        for (int i = 0; i < count; ++i) poll();
    }
    void open() {
        ConnectionOffer offer;
        ASSERT_EQ(low.tcp->offer(*low.connection, offer), 0);
        ASSERT_EQ(high.tcp->dial(*high.connection, offer), 0);
        ASSERT_TRUE(until([&] { return low.opened && high.opened; }));
    }
};

}  // namespace starling::network
