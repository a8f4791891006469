// A simulated network for tests of sessions. It loses, duplicates, delays and reorders datagrams, has rails that fail and links that are
// narrow, all drawn from a seed. Its clock is a number that advances from event to event.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <queue>
#include <random>
#include <string>
#include <vector>

#include "transport/network/session/session.h"

namespace starling::network {

/// How the network treats datagrams; probabilities in percent.
struct Weather {
    int lost = 0;
    int doubled = 0;
    uint64_t delay = 20 * kMicrosecond;
    uint64_t jitter = 0;  ///< largest random extra delay, by which datagrams overtake each other
};

class Network;

/// The network's treatment of one datagram, if the test decides it.
enum class Fate { arrives, lost, doubled, late };

/// A process: the environment of its sessions, and one session with the other end.
class End final : public SessionEnvironment, public transport::PacketReceiver {
  public:
    End(Network& its_network, uint32_t rank, uint64_t its_key);

    void send(Session& session, const Route& route, uint32_t number, const iovec* parts, int count) override;
    void flush() override {}
    void deliver(void*, const transport::Packet& packet) override {
        if (on_packet) on_packet(*session, packet.header, packet.payload);
    }
    void handle_ports(Session&, const std::byte*, uint32_t) override {}
    void unreachable(Session&) override { ++given_up; }
    uint64_t new_epoch() override { return ++epochs; }

    SessionReceiver receiver() { return {this, nullptr}; }
    static inline uint64_t epochs = 0;  ///< number of epochs so far; later processes have later epochs
    Network& network;
    std::unique_ptr<Session> session;
    std::function<void(Session&, const packet::Header&, const std::byte*)> on_packet;
    int given_up = 0;
    /// Whether the process polls; if not, datagrams wait in its socket, whose buffer has socket_bytes bytes.
    bool listening = true;
    size_t socket_bytes = 200'000;
    uint64_t timer = UINT64_MAX;
    uint64_t datagrams = 0, bytes = 0;
};

class Network {
  public:
    explicit Network(uint64_t seed) : random(seed), ends{} {
        make(0);
        make(1);
    }

    /// Creates a process, or replaces it by a new one, with `rails` paths to the other.
    void make(int which, int rails = 1) {
        auto made = std::make_unique<End>(*this, static_cast<uint32_t>(which), 100 + static_cast<uint64_t>(which));
        made->session = std::make_unique<Session>(*made, PeerName{7, static_cast<uint32_t>(1 - which)},
                                                  100 + static_cast<uint64_t>(1 - which), made->receiver(), nullptr);
        if (ends[which]) graves.push_back(std::move(ends[which]));
        ends[which] = std::move(made);
        waiting[which].clear();
        set_rails(which, rails);
    }
    void set_rails(int which, int rails) {
        for (int i = 0; i < rails; ++i) ends[which]->session->set_path(i, route(i), mtu[i] - 28);
    }
    static Route route(int rail) { return {static_cast<uint32_t>(rail + 1), 9, static_cast<uint16_t>(rail)}; }
    /// The route of a rail as a preferred path: by verbs.
    static Route preferred_route(int rail) {
        return {static_cast<uint32_t>(rail + 1), 9, static_cast<uint16_t>(Route::kVerbs + rail)};
    }
    static int rail_of(const Route& route) { return route.rail % Route::kVerbs; }

    Session& session(int which) { return *ends[which]->session; }

    /// Sends a packet of `bytes` bytes of payload computed from `number`. Returns false if the session has no room.
    bool send(int from, uint64_t number, uint32_t bytes) {
        Session& s = session(from);
        packet::Header* const header = s.reserve(bytes);
        if (!header) return false;
        header->kind = packet::PacketKind::eager;
        header->operation = 0;
        header->message.sequence = static_cast<uint32_t>(number);
        header->message.tag = 0;
        header->message.source = from;
        header->message.context = number;
        auto* const payload = reinterpret_cast<std::byte*>(header + 1);
        for (uint32_t i = 0; i < bytes; ++i) payload[i] = byte_of(number, i);
        s.commit(bytes, now);
        s.transmit(now);
        arm(from);
        return true;
    }
    static std::byte byte_of(uint64_t number, uint32_t i) { return static_cast<std::byte>(number * 131 + i * 7 + i / 256); }

    /// Runs the next datagram or timer. Returns false if there is none.
    bool step() {
        const uint64_t timer = std::min(ends[0]->timer, ends[1]->timer);
        if (events.empty() && timer == UINT64_MAX) return false;
        if (!events.empty() && events.top().at <= timer) {
            const Event event = events.top();
            events.pop();
            now = std::max(now, event.at);
            arrive(event);
            return true;
        }
        now = std::max(now, timer);
        const int which = ends[0]->timer == timer ? 0 : 1;
        if (ends[which]->listening) session(which).on_timer(now);
        arm(which);
        if (!ends[which]->listening) ends[which]->timer = UINT64_MAX;  // the process computes and does not poll
        return true;
    }
    void run_until(uint64_t time) {
        while (now < time) {
            const uint64_t next = std::min({ends[0]->timer, ends[1]->timer, events.empty() ? UINT64_MAX : events.top().at});
            if (next > time) break;
            step();
        }
        now = std::max(now, time);
    }
    void arm(int which) { ends[which]->timer = session(which).deadline(); }

    /// The process polls its socket again after computing.
    void listen(int which) {
        ends[which]->listening = true;
        auto pile = std::move(waiting[which]);
        waiting[which].clear();
        for (auto& one : pile) take(which, one.second, one.first);
        session(which).transmit(now);
        arm(which);
    }

    void carry(int from, const Route& route, std::vector<std::byte> bytes) {
        const int rail = rail_of(route);
        End& end = *ends[from];
        ++end.datagrams;
        end.bytes += bytes.size();
        if (rail_dead[rail] || deaf[1 - from] || bytes.size() + 28 > black_hole[rail]) return;
        if (fate) {
            const Fate what = fate();
            if (what == Fate::lost) return;
            const uint64_t late = what == Fate::late ? 300 * kMicrosecond : 0;
            events.push({now + weather.delay + late, ++order, 1 - from, rail, bytes});
            if (what == Fate::doubled) events.push({now + weather.delay + 150 * kMicrosecond, ++order, 1 - from, rail, bytes});
            return;
        }
        if (percent() < weather.lost) return;
        const int copies = 1 + (percent() < weather.doubled);
        for (int i = 0; i < copies; ++i) {
            const uint64_t delay = weather.delay + (weather.jitter ? random() % weather.jitter : 0);
            events.push({now + delay, ++order, 1 - from, rail, bytes});
        }
    }
    bool too_long(int rail, size_t bytes) const { return bytes + 28 > mtu[rail]; }

    struct Event {
        uint64_t at, order;
        int to, rail;
        std::vector<std::byte> bytes;
        std::function<void()> pipe = nullptr;  ///< event of a PipePair, in place of a datagram's arrival
        bool operator<(const Event& other) const { return at != other.at ? at > other.at : order > other.order; }
    };

    std::mt19937_64 random;
    Weather weather;
    uint64_t now = kSecond;
    std::unique_ptr<End> ends[2];
    std::vector<std::unique_ptr<End>> graves;  ///< ends of the processes that were replaced
    uint32_t mtu[kMaxAddresses] = {1500, 1500, 1500, 1500};
    uint32_t black_hole[kMaxAddresses] = {~0u, ~0u, ~0u, ~0u};  ///< per rail: longer datagrams vanish without an error
    bool rail_dead[kMaxAddresses] = {};
    SendResult refuses[kMaxAddresses] = {};  ///< result of sending a datagram by the rail, if not SendResult::done
    static constexpr uint64_t kMostRefusals = 1'000'000;
    uint64_t refusals = 0;
    uint64_t refusal_age = 0;  ///< ns by which the time of a refusal is earlier than that of the transmission
    bool deaf[2] = {};         ///< whether an end receives nothing
    std::priority_queue<Event> events;
    std::function<Fate()> fate;  ///< decides the treatment of a datagram in place of the weather
    bool undecodable = false;    ///< whether a session sent bytes that do not decode as a datagram

    /// Runs `what` for the process `which` after `delay`; equal times run in the order of the calls.
    void later(int which, uint64_t delay, std::function<void()> what) {
        events.push({now + delay, ++order, which, 0, {}, std::move(what)});
    }
    void handle_frame(int which, const std::vector<std::byte>& bytes, Carrier& carrier) {
        take(which, bytes, -1, &carrier);
        session(which).transmit(now);
        arm(which);
    }

    int percent() { return static_cast<int>(random() % 100); }

  private:
    void arrive(const Event& event) {
        End& end = *ends[event.to];
        if (!end.listening && !event.pipe) {
            size_t sum = event.bytes.size();
            for (const auto& one : waiting[event.to]) sum += one.second.size() + 512;
            if (sum <= end.socket_bytes) waiting[event.to].push_back({event.rail, event.bytes});
            return;
        }
        if (event.pipe) {
            event.pipe();
            arm(event.to);
            return;
        }
        take(event.to, event.bytes, event.rail);
        end.session->transmit(now);
        arm(event.to);
    }
    void take(int which, const std::vector<std::byte>& bytes, int rail, Carrier* carrier = nullptr) {
        // Copy to a block of exactly this size, aligned as a receive buffer is, so that the sanitizer finds reads past it.
        std::unique_ptr<uint64_t[]> copy(new uint64_t[(bytes.size() + 7) / 8]);
        std::memcpy(copy.get(), bytes.data(), bytes.size());
        Datagram datagram;
        if (!decode(reinterpret_cast<const std::byte*>(copy.get()), bytes.size(), datagram)) {
            undecodable = true;
            return;
        }
        session(which).receive(datagram, rail, carrier, now);
    }

    uint64_t order = 0;
    std::vector<std::pair<int, std::vector<std::byte>>> waiting[2];
};

inline End::End(Network& its_network, uint32_t rank, uint64_t its_key) : network(its_network) {
    self = {7, rank};
    key = its_key;
}

inline void End::send(Session& from, const Route& route, uint32_t number, const iovec* parts, int count) {
    std::vector<std::byte> bytes;
    for (int i = 0; i < count; ++i) {
        const auto* const part = static_cast<const std::byte*>(parts[i].iov_base);
        bytes.insert(bytes.end(), part, part + parts[i].iov_len);
    }
    const int rail = Network::rail_of(route);
    if (network.refuses[rail] != SendResult::done) {
        // A session that sends again at once, forever, is a defect that a test must find without hanging.
        if (++network.refusals > Network::kMostRefusals) network.refuses[rail] = SendResult::done;
        from.refused(number, network.refuses[rail], network.now - network.refusal_age);
        return;
    }
    if (network.too_long(rail, bytes.size())) {
        from.refused(number, SendResult::too_long, network.now);
        return;
    }
    network.carry(static_cast<int>(self.rank), route, std::move(bytes));
}

/// One end of a connection. It transmits whole frames in order as long as it lives, and accepts `room` bytes until it is busy.
class Pipe final : public Carrier {
  public:
    Pipe(Network& its_network, int its_end) : network(its_network), end(its_end) {}
    SendResult send(const iovec* parts, int count) override {
        if (!alive) return SendResult::closed;
        std::vector<std::byte> bytes;
        for (int i = 0; i < count; ++i) {
            const auto* const part = static_cast<const std::byte*>(parts[i].iov_base);
            bytes.insert(bytes.end(), part, part + parts[i].iov_len);
        }
        if (under_way > 0 && under_way + bytes.size() > room) return SendResult::busy;
        longest = std::max(longest, bytes.size());
        under_way += bytes.size();
        ++frames;
        if (stalled) return SendResult::done;
        if (hold)
            held.push_back(std::move(bytes));
        else
            bring(std::move(bytes));
        return SendResult::done;
    }
    void bring(std::vector<std::byte> bytes) {
        network.later(1 - end, 30 * kMicrosecond, [this, bytes] {
            if (!alive) return;
            under_way -= bytes.size();
            network.handle_frame(1 - end, bytes, *other);
            network.session(end).writable(*this);
            network.session(end).transmit(network.now);
            network.arm(end);
        });
    }
    void let_go() {
        hold = false;
        for (auto& frame : held) bring(std::move(frame));
        held.clear();
    }
    uint32_t frame_limit() const override { return 66'560; }
    bool stalls(uint64_t) override { return stalled; }
    bool by_device() const override { return device; }

    Network& network;
    const int end;
    Pipe* other = nullptr;
    bool alive = true;
    bool device = false;
    bool stalled = false;  ///< whether the pipe accepts everything and delivers nothing
    bool hold = false;     ///< whether to keep frames in the peer host's buffer while the peer's process computes
    std::vector<std::vector<std::byte>> held;
    size_t room = 200'000, under_way = 0, longest = 0;
    uint64_t frames = 0;
};

/// A connection between the two sessions. Frames in transit when it breaks are lost.
struct PipePair {
    explicit PipePair(Network& its_network, bool device = false) : network(its_network), ends{{network, 0}, {network, 1}} {
        for (int i = 0; i < 2; ++i) {
            ends[i].device = device;
            ends[i].other = &ends[1 - i];
            network.session(i).attach(ends[i]);
        }
    }
    void die() {
        for (Pipe& one : ends) one.alive = false;
        for (int i = 0; i < 2; ++i) {
            network.session(i).detach(ends[i]);
            network.session(i).transmit(network.now);
            network.arm(i);
        }
    }
    Network& network;
    Pipe ends[2];
};

/// Sends numbered messages of random sizes both ways, and checks that each arrives once, whole and in order.
class Exchange {
  public:
    Exchange(Network& its_network, uint64_t count, uint32_t most_bytes, bool both_ways = true)
        : network(its_network), messages(count), most(most_bytes), ways(both_ways ? 2 : 1) {
        for (int i = 0; i < 2; ++i) watch(i);
    }
    void watch(int which) {
        network.ends[which]->on_packet = [this, which](Session&, const packet::Header& header, const std::byte* payload) {
            check(which, header, payload);
        };
    }

    /// Runs until everything is delivered and acknowledged; returns false if that takes over `steps` steps.
    bool run(uint64_t steps) {
        for (uint64_t i = 0; i < steps; ++i) {
            fill();
            if (complete()) return true;
            if (failed || !network.step()) return false;
        }
        return false;
    }
    void fill() {
        for (int from = 0; from < ways; ++from)
            while (sent[from] < messages && network.send(from, sent[from], size_of(sent[from]))) ++sent[from];
    }
    /// Returns the progress of each direction, for messages of failed tests.
    std::string state() const {
        std::string text;
        for (int i = 0; i < 2; ++i) {
            const Session& s = network.session(i);
            text += "end " + std::to_string(i) + ": sent " + std::to_string(sent[i]) + " got " + std::to_string(got[i]) +
                    (s.dead() ? " dead" : "") + (s.idle() ? " idle" : "") + " in flight " + std::to_string(s.in_flight()) +
                    " datagram " + std::to_string(s.path(0).datagram) + " timeouts " +
                    std::to_string(network.ends[i]->counters.timeouts) + " malformed " +
                    std::to_string(network.ends[i]->counters.malformed) + "; ";
        }
        return text + "at " + std::to_string(network.now / kMillisecond) + " ms";
    }
    bool complete() const {
        for (int from = 0; from < ways; ++from)
            if (got[1 - from] < messages || !network.session(from).idle()) return false;
        return true;
    }

    Network& network;
    const uint64_t messages;
    const uint32_t most;
    const int ways;
    uint64_t sent[2] = {}, got[2] = {};
    bool failed = false;

  private:
    uint32_t size_of(uint64_t number) const {
        const uint64_t mixed = (number + 1) * 0x9e3779b97f4a7c15u;
        return mixed >> 60 == 0 ? static_cast<uint32_t>(mixed >> 8) % (most + 1)
                                : static_cast<uint32_t>(mixed >> 8) % std::min(most + 1, 200u);
    }
    void check(int which, const packet::Header& header, const std::byte* payload) {
        const uint64_t number = got[which]++;
        if (failed) return;
        failed = header.message.context != number || header.bytes != size_of(number);
        for (uint32_t i = 0; !failed && i < header.bytes; ++i) failed = payload[i] != Network::byte_of(number, i);
        EXPECT_FALSE(failed) << "to " << which << ": message " << number << " of " << size_of(number) << " bytes is number "
                             << header.message.context << " of " << header.bytes << " bytes, or spoilt";
    }
};

}  // namespace starling::network
