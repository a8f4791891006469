// Messages and streams between two processes whose TCP sockets are killed at random points, again and again, beside a network that loses
// and reorders datagrams. Nothing is lost, duplicated or reordered. Sessions and their datagrams are simulated; TCP is real, over the
// loopback device, with sockets on two rails.
#include <netinet/in.h>
#include <sys/socket.h>

#include <deque>
#include <random>
#include <utility>

#include "network_tcp_pair.h"
#include "session_simulation.h"
#include "transport/network/tcp/socket.h"
#include "transport/network/tcp/tcp.h"

namespace starling::network {
namespace {

constexpr uint32_t kStreamPiece = 1200;  ///< bytes of a stream fragment in one packet of the base path

/// The streams of one direction, handled as src/message handles them.
struct Streams {
    struct One {
        std::vector<std::byte> data;
        std::unique_ptr<OutStream> out;
        bool on_base_path = false;
    };
    std::map<uint32_t, One> sending;  ///< streams that are being sent, by generation
    uint32_t next = 1;
    int done = 0;
};

class World {
  public:
    explicit World(uint64_t seed) : random(seed), network(seed), exchange(network, 20000, 30000), pair({rail(1), rail(2)}) {
        network.weather = {20, 5, 20 * kMicrosecond, 100 * kMicrosecond};
        for (int i = 0; i < 2; ++i) {
            Side& one = side(i);
            one.tcp.reset();
            TcpOptions options;
            options.self = {7, static_cast<uint32_t>(i + 1)};
            options.key = 1001 + static_cast<uint64_t>(i);
            options.fragment_bytes = 64 * 1024;
            options.send_buffer = 64 * 1024;
            options.pause_ns = 500'000;
            options.patience_ns = 1'000'000;
            options.examine = [](int fd, uint64_t limit) { return current->examine_socket(fd, limit); };
            EXPECT_EQ(Tcp::create(options, upcalls(), one.tcp), 0);
            const TcpRail rails[] = {rail(1), rail(2)};
            one.tcp->set_rails(rails);
            one.connection = nullptr;
            network.ends[i]->timeout = uint64_t{1} << 60;  // no timeouts, because simulated time is independent of TCP's
            auto deliver = network.ends[i]->on_packet;
            network.ends[i]->on_packet = [this, i, deliver](Session& s, const packet::Header& header,
                                                            const std::byte* payload) {
                if (header.kind == packet::PacketKind::eager)
                    deliver(s, header, payload);
                else
                    take_packet(i, header, payload);
            };
        }
        current = this;
    }

    bool run() {
        for (uint64_t round = 0; round < 3'000'000; ++round) {
            exchange.fill();
            for (int i = 0; i < 2; ++i) {
                flush_base_path(i);
                if (streams[i].done + static_cast<int>(streams[i].sending.size()) < kStreams && streams[i].sending.size() < 3)
                    start_stream(i);
            }
            if (random() % 4 == 0) change_something();
            const uint64_t now = tick();
            side(0).tcp->poll(now);
            side(1).tcp->poll(now);
            clean_up();
            network.run_until(network.now + random() % (200 * kMicrosecond));
            if (exchange.failed || spoilt) return false;
            if (exchange.complete() && streams[0].done == kStreams && streams[1].done == kStreams) return true;
        }
        return false;
    }

    Side& side(int i) { return i == 0 ? pair.low : pair.high; }

    static constexpr int kStreams = 300;
    std::mt19937_64 random;
    Network network;
    Exchange exchange;
    Pair pair;
    Streams streams[2];
    bool spoilt = false;
    int killed = 0, opened = 0, by_tcp = 0, stranded = 0, paused = 0, trusted = 0;

  private:
    static inline World* current = nullptr;
    static int index(Connection& c) { return &Side::of(c) == &current->pair.low ? 0 : 1; }
    Session& session(int i) { return network.session(i); }

    static TcpUpcalls upcalls() {
        TcpUpcalls u = Side::upcalls();
        u.opened = [](Connection& c) {
            ++current->opened;
            current->session(index(c)).attach(c);
            current->serve(index(c));
        };
        u.paused = u.trusted = [](Connection& c) {
            ++(c.paused() ? current->paused : current->trusted);
            // Leave the connection to clean_up(), because it may be in the middle of an operation now.
            current->doubts[index(c)] = true;
        };
        u.broken = u.ended = u.failed = [](Connection& c) { ++Side::of(c).broken; };
        u.room = [](Connection& c) {
            current->session(index(c)).writable(c);
            current->serve(index(c));
        };
        u.rerouted = [](Connection& c) {
            current->session(index(c)).detach(c);
            current->session(index(c)).attach(c);
            current->serve(index(c));
        };
        u.frame = [](Connection& c, const std::byte* frame, size_t bytes) {
            Datagram datagram;
            if (!decode(frame, bytes, datagram)) return false;
            ++current->by_tcp;
            current->session(index(c)).receive(datagram, -1, &c, current->network.now);
            current->serve(index(c));
            return true;
        };
        u.target = [](Connection& c, const StreamFragment& piece, uint64_t done, uint64_t) -> std::byte* {
            Side::Incoming* to = find(c, piece);
            return to && to->in_place ? to->memory.data() + piece.offset + done : nullptr;
        };
        u.unpack = [](Connection& c, const StreamFragment& piece, uint64_t done, const std::byte* data, uint64_t bytes) {
            if (Side::Incoming* to = find(c, piece)) std::memcpy(to->memory.data() + piece.offset + done, data, bytes);
        };
        u.fragment = [](Connection& c, const StreamFragment& piece) {
            current->arrived(index(c), piece.generation, {piece.offset, piece.offset + piece.bytes});
        };
        u.stranded = [](OutStream& stream) { current->strand(stream); };
        return u;
    }

    void serve(int i) {
        session(i).transmit(network.now);
        network.arm(i);
    }

    // Start a message as a stream. All use one request id, so that only the generation keeps a late fragment from another message.

    void start_stream(int from) {
        const uint32_t generation = streams[from].next++;
        Streams::One& one = streams[from].sending[generation];
        one.data.resize(random() % 400'000 + 1);
        for (size_t i = 0; i < one.data.size(); ++i) one.data[i] = static_cast<std::byte>(generation * 7 + i * 13 + i / 251);
        OutStream::StreamSource source;
        source.serial = 1;
        source.generation = generation;
        source.bytes = one.data.size();
        source.memory = one.data.data();
        one.out = std::make_unique<OutStream>(source);
        received[1 - from][generation] = {generation, std::vector<std::byte>(one.data.size()), {}, generation % 3 != 0};
        if (Connection* c = side(from).connection; c && c->state() == Connection::CarrierState::open)
            side(from).tcp->add_stream(*c, *one.out);
        else
            one.on_base_path = true;
    }
    void strand(OutStream& stream) {
        ++stranded;
        for (auto& of : streams)
            for (auto& [generation, one] : of.sending)
                if (one.out.get() == &stream) one.on_base_path = true;
    }
    void flush_base_path(int from) {
        for (auto& [generation, one] : streams[from].sending) {
            if (!one.on_base_path) continue;
            while (one.out->has_work()) {
                packet::Header* const header = session(from).reserve(kStreamPiece);
                if (!header) return serve(from);
                const StreamRange range = one.out->extract(kReliablePath, kStreamPiece);
                header->kind = packet::PacketKind::fragment;
                header->fragment.generation = generation;
                header->fragment.offset = range.begin;
                std::memcpy(reinterpret_cast<std::byte*>(header + 1), one.data.data() + range.begin, range.bytes());
                session(from).commit(static_cast<uint32_t>(range.bytes()), network.now);
            }
        }
        serve(from);
    }
    void take_packet(int to, const packet::Header& header, const std::byte* payload) {
        if (header.kind == packet::PacketKind::fetched) {
            const auto it = streams[to].sending.find(header.fragment.generation);
            if (it == streams[to].sending.end()) return void(spoilt = true);
            side(to).tcp->remove_stream(*it->second.out, true);
            streams[to].sending.erase(it);
            ++streams[to].done;
            return;
        }
        const auto it = received[to].find(header.fragment.generation);
        if (it == received[to].end()) return;  // a late fragment of a message that is complete
        std::memcpy(it->second.memory.data() + header.fragment.offset, payload, header.bytes);
        arrived(to, header.fragment.generation, {header.fragment.offset, header.fragment.offset + header.bytes});
    }
    void arrived(int to, uint32_t generation, StreamRange range) {
        const auto it = received[to].find(generation);
        if (it == received[to].end()) return;
        it->second.coverage.add(range);
        if (it->second.coverage.bytes() < it->second.memory.size()) return;
        if (it->second.memory != streams[1 - to].sending.at(generation).data) spoilt = true;
        received[to].erase(it);
        fetched[to].push_back(generation);
    }
    void send_confirmations(int from) {
        while (!fetched[from].empty()) {
            packet::Header* const header = session(from).reserve(0);
            if (!header) return;
            header->kind = packet::PacketKind::fetched;
            header->fragment.generation = fetched[from].front();
            fetched[from].pop_front();
            session(from).commit(0, network.now);
            serve(from);
        }
    }

    // Faults.

    /// Returns the real time, without the time in which other processes had the core. A process that did not run for 10 ms ignores missing
    /// acknowledgements. So with real time no connection would be doubted on a busy machine.
    uint64_t tick() {
        const uint64_t real = now_ns();
        clock += std::min(real - seen, kMillisecond);
        seen = real;
        return clock;
    }
    uint64_t seen = now_ns(), clock = seen;
    /// Examines a socket, and now and then reports falsely that nothing is acknowledged any more.
    Health examine_socket(int fd, uint64_t limit) {
        Health health = examine(fd, limit);
        health.acked = health.repeated = 0;
        health.unacknowledged = health.timed_out = random() % 10 == 0;
        return health;
    }
    /// Breaks a random TCP socket of this process in one of several ways, at any position in its stream.
    void kill_one() {
        std::vector<int> candidates;
        for (int fd = 3; fd < 64; ++fd) {
            sockaddr_in peer{};
            socklen_t length = sizeof peer;
            if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &length) == 0 && peer.sin_family == AF_INET)
                candidates.push_back(fd);
        }
        if (candidates.empty()) return;
        const int fd = candidates[random() % candidates.size()];
        ++killed;
        if (random() % 2) {
            shutdown(fd, random() % 2 ? SHUT_RDWR : SHUT_WR);
            return;
        }
        sockaddr nowhere{};
        nowhere.sa_family = AF_UNSPEC;
        connect(fd, &nowhere, sizeof nowhere);
    }
    void change_something() {
        const auto dice = random() % 400;
        if (dice < 12 || dice > 350) kill_one();
        if (dice == 12 && side(0).connection) close_side(static_cast<int>(random() % 2));
        if (dice == 13 && side(0).connection) {
            const int i = static_cast<int>(random() % 2);
            if (side(i).connection) side(i).tcp->finish(*side(i).connection);
        }
        if (dice > 200 && !side(0).connection && !side(1).connection) open();
        if (dice > 13 && dice < 20) {
            const TcpRail all[] = {rail(1), rail(2)};
            const size_t first = random() % 2;
            Side& one = side(static_cast<int>(random() % 2));
            if (random() % 2)
                one.tcp->set_rails(all);
            else
                one.tcp->set_rails({all + first, 1});
        }
        for (int i = 0; i < 2; ++i) send_confirmations(i);
    }
    void open() {
        ConnectionOffer offer;
        const uint32_t low_rank = 1;
        for (int i = 0; i < 2; ++i) {
            side(i).broken = 0;
            side(i).connection = &side(i).tcp->add({7, static_cast<uint32_t>(1 - i) + low_rank},
                                                   1001 + static_cast<uint64_t>(1 - i), &side(i), nullptr);
        }
        const int listener = static_cast<int>(random() % 2);
        side(listener).tcp->offer(*side(listener).connection, offer);
        side(1 - listener).tcp->dial(*side(1 - listener).connection, offer);
    }
    void close_side(int i) {
        Connection* c = side(i).connection;
        if (!c) return;
        side(i).connection = nullptr;
        session(i).detach(*c);
        side(i).tcp->drop(*c);
        serve(i);
    }
    /// Drops broken connections, so that both sides may open new ones, and detaches doubted ones, which carry no frames. In a process, link
    /// does both.
    void clean_up() {
        for (int i = 0; i < 2; ++i) {
            Connection* const c = side(i).connection;
            if (!std::exchange(doubts[i], false) || !c || c->state() != Connection::CarrierState::open) continue;
            session(i).detach(*c);
            if (!c->paused() && !c->finished()) session(i).attach(*c);
            serve(i);
        }
        for (int i = 0; i < 2; ++i)
            if (side(i).broken) {
                side(i).broken = 0;
                close_side(i);
            }
        for (int i = 0; i < 2; ++i)
            if (!side(i).connection && side(1 - i).connection &&
                side(1 - i).connection->state() != Connection::CarrierState::open)
                close_side(1 - i);
    }

    std::map<uint32_t, Side::Incoming> received[2];  ///< incoming messages by generation, which here is the message's number
    std::deque<uint32_t> fetched[2];                 ///< numbers of messages that must be confirmed with a FIN
    bool doubts[2] = {};                             ///< whether one of the end's connections became doubted, or trusted again
    static Side::Incoming* find(Connection& c, const StreamFragment& piece) {
        auto& all = current->received[index(c)];
        const auto it = all.find(piece.generation);
        return it == all.end() ? nullptr : &it->second;
    }
};

/// Counts of the faults and events that occurred.
struct Met {
    int killed = 0, stranded = 0, paused = 0, trusted = 0, opened = 0, by_tcp = 0;

    void add(const World& world) {
        killed += world.killed, stranded += world.stranded, paused += world.paused;
        trusted += world.trusted, opened += world.opened, by_tcp += world.by_tcp;
    }
    bool enough() const { return killed > 60 && stranded > 20 && paused > 20 && trusted > 12 && opened > 60 && by_tcp > 400; }
};

// TCP runs in real time, so that the seed alone does not determine the faults. The test runs seeds until each fault has occurred.
TEST(TcpModel, FailoverAmongKilledSocketsLosesDuplicatesAndReordersNothing) {
    constexpr uint64_t kLeastSeeds = 4, kMostSeeds = 40;
    Met met;
    for (uint64_t seed = 1; seed <= kLeastSeeds || (seed <= kMostSeeds && !met.enough()); ++seed) {
        World world(seed);
        ASSERT_TRUE(world.run()) << "seed " << seed << ": messages " << world.exchange.got[0] << ", " << world.exchange.got[1]
                                 << ", streams " << world.streams[0].done << ", " << world.streams[1].done << ", killed "
                                 << world.killed << ", opened " << world.opened << ", spoilt " << world.spoilt;
        met.add(world);
    }
    EXPECT_TRUE(met.enough()) << "killed " << met.killed << ", stranded " << met.stranded << ", doubted " << met.paused
                              << ", trusted " << met.trusted << ", opened " << met.opened << ", by TCP " << met.by_tcp;
}

}  // namespace
}  // namespace starling::network
