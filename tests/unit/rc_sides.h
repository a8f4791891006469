// Two processes within one, each with a port of an in-memory fabric, and an RC connection (transport/network/rdma/rc_connection.h) between
// them, for tests of that connection.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "mpi.h"
#include "transport/network/rdma/rc_connection.h"
#include "transport/network/wire/datagram.h"
#include "verbs_queues.h"

namespace starling::network {

using transport::Coverage;

struct Side {
    verbs::queues::FabricPort port;
    std::unique_ptr<Rc> rc;
    Connection* connection = nullptr;
    int opened = 0, failed = 0, ended = 0, broken = 0, room = 0, stranded = 0;
    /// Kind and payload of the packets that arrived on the base path.
    std::vector<std::pair<packet::PacketKind, std::string>> told;
    std::vector<std::string> frames;
    std::function<void(Connection&)> on_frame, on_room;
    std::vector<std::byte> memory;
    Coverage coverage;
    bool in_place = true;

    static Side& of(Connection& c) { return *static_cast<Side*>(c.user); }
    Side(verbs::queues::Fabric& fabric, uint8_t id) : port(fabric, id) {
        ConnectionUpcalls u;
        u.opened = [](Connection& c) { ++of(c).opened; };
        u.failed = [](Connection& c) { ++of(c).failed; };
        u.ended = [](Connection& c) { ++of(c).ended; };
        u.broken = [](Connection& c) { ++of(c).broken; };
        u.frame = [](Connection& c, const std::byte* frame, size_t bytes) {
            of(c).frames.emplace_back(reinterpret_cast<const char*>(frame) + 8, bytes - 8);
            if (of(c).on_frame) of(c).on_frame(c);
            return of(c).frames.back() != "garbage";
        };
        u.room = [](Connection& c) {
            ++of(c).room;
            if (of(c).on_room) of(c).on_room(c);
        };
        u.target = [](Connection& c, const StreamFragment& piece, uint64_t done, uint64_t) -> std::byte* {
            return of(c).in_place ? of(c).memory.data() + piece.offset + done : nullptr;
        };
        u.unpack = [](Connection& c, const StreamFragment& piece, uint64_t done, const std::byte* data, uint64_t bytes) {
            std::memcpy(of(c).memory.data() + piece.offset + done, data, bytes);
        };
        u.fragment = [](Connection& c, const StreamFragment& piece) {
            of(c).coverage.add({piece.offset, piece.offset + piece.bytes});
        };
        u.stranded = [](OutStream& stream) { ++static_cast<Side*>(stream.source().user)->stranded; };
        rc = std::make_unique<Rc>(u, [](Connection& c, packet::PacketKind kind, const void* payload, uint32_t bytes) {
            of(c).told.emplace_back(kind, std::string(static_cast<const char*>(payload), bytes));
        });
        connect();
    }
    void connect() { connection = &rc->add({1, port.id}, this, nullptr, port.id, port); }

    std::string describe(packet::PacketKind kind) {
        std::byte offer[32] = {};
        uint32_t bytes = 0;
        if (rc->describe(*connection, kind, offer, bytes) != MPI_SUCCESS) return "";
        return {reinterpret_cast<const char*>(offer), sizeof offer};
    }
    int use(packet::PacketKind kind, const std::string& offer) {
        return rc->use(*connection, kind, reinterpret_cast<const std::byte*>(offer.data()));
    }
    bool poll() {
        verbs::VerbsEvent events[4];
        const int count = port.poll(events, 4);
        for (int i = 0; i < count; ++i) {
            if (events[i].user || events[i].kind == verbs::VerbsEvent::VerbsEventKind::done) rc->happened(events[i]);
            if (events[i].data) port.return_buffer(events[i]);
        }
        const bool by_ring = rc->poll_rings();
        return rc->poll() || by_ring || count > 0;
    }
    SendResult send(const std::string& text) {
        uint64_t head = DatagramHeader::kMagic;
        const iovec parts[] = {{&head, 8}, {const_cast<char*>(text.data()), text.size()}};
        return connection->send(parts, 2);
    }
    size_t queues() const { return port.counters().queues; }
    bool is_open() const { return connection->state() == Connection::CarrierState::open; }
};

struct RcPair {
    verbs::queues::Fabric fabric;
    Side a{fabric, 1}, b{fabric, 2};

    /// Carries out all pending work of the queues and of the base path, except packets for which `lost` is true.
    void run() {
        for (bool any = true; any;) {
            any = a.port.run();
            any |= b.port.run();
            any |= a.poll();
            any |= b.poll();
            for (auto [from, to] : {std::pair{&a, &b}, std::pair{&b, &a}})
                for (auto [kind, payload] : std::exchange(from->told, {})) {
                    any = true;
                    hand(*to, kind, payload);
                }
        }
    }
    static void hand(Side& to, packet::PacketKind kind, const std::string& payload) {
        if (kind == packet::PacketKind::wire_lost) {
            QueuePair pair;
            std::memcpy(&pair, payload.data(), sizeof pair);
            to.rc->lose_remote_queue(*to.connection, pair);
        } else {
            EXPECT_EQ(to.use(kind, payload), MPI_SUCCESS) << failure_text();
        }
    }
    void open() {
        ASSERT_EQ(b.use(packet::PacketKind::open, a.describe(packet::PacketKind::open)), MPI_SUCCESS) << failure_text();
        ASSERT_EQ(a.use(packet::PacketKind::accept, b.describe(packet::PacketKind::accept)), MPI_SUCCESS) << failure_text();
        run();
        ASSERT_TRUE(a.is_open() && b.is_open());
    }
    OutStream::StreamSource source(Side& from, uint64_t bytes) {
        data.resize(bytes);
        for (size_t i = 0; i < bytes; ++i) data[i] = static_cast<std::byte>(i * 7 + i / 253);
        OutStream::StreamSource source;
        source.serial = 5;
        source.generation = 6;
        source.bytes = bytes;
        source.memory = data.data();
        source.user = &from;
        source.stranded = nullptr;
        return source;
    }
    std::vector<std::byte> data;
};

class RcTest : public testing::Test, protected RcPair {};

}  // namespace starling::network
