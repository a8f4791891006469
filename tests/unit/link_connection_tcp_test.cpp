// A model of the state machine of a TCP connection, in every order of events: two ends, an ordered base path, and sockets that connect,
// fail, break and close at any time. The rules are those of transport/network/network and tcp. Only an end that received a token connects,
// and its hello shows the token. If two open packets cross, the one of the lower end counts.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "exploration.h"
#include "link/connection.h"

namespace starling::link {
namespace {

constexpr char kFirstToken = 'A';

struct Packet {
    PeerConnectionEvent event;
    int token;  ///< token of an open packet
    Stamp stamp;
};

struct Socket {
    int dialler = 0, token = 0;
    bool hello = true;     ///< whether the hello is in transit to the listener
    bool welcome = false;  ///< whether the welcome is in transit back
    bool refused = false;
    bool cut = false;
    std::array<bool, 2> closed{}, finished{};

    void encode(std::string& key) const {
        key += static_cast<char>('0' + dialler);
        key += static_cast<char>(kFirstToken + token);
        key += static_cast<char>('0' + (hello | welcome << 1 | refused << 2 | cut << 3));
        key += static_cast<char>('0' + (closed[0] | closed[1] << 1 | finished[0] << 2 | finished[1] << 3));
    }
};

enum class Wire : uint8_t { none, idle, waiting, dialling, open };

struct End {
    ConnectionState state = ConnectionState::closed;
    Wire wire = Wire::none;
    int token = 0, deferred = 0;
    int socket = -1;
    int wants = 0;
    bool end_reported = false, dead = false;
    PeerConnectionState turns;
    std::vector<Packet> base;  ///< packets on the base path in transit to this end

    void encode(std::string& key, const End& peer) const {
        for (const int part : {static_cast<int>(state), static_cast<int>(wire), token, deferred, socket + 1, wants,
                               end_reported | dead << 1 | turns.crossed() << 2, static_cast<int>(turns.unanswered()),
                               peer.turns.so_far().sent - turns.so_far().received})
            key += static_cast<char>('0' + part);
        // Encode stamps relative to the current counts, because only their distance matters.
        for (const Packet& packet : base)
            for (const int part : {static_cast<int>(packet.event), packet.token, peer.turns.so_far().sent - packet.stamp.sent,
                                   turns.so_far().sent - packet.stamp.received})
                key += static_cast<char>('0' + part);
        key += '|';
    }
};

struct World {
    std::array<End, 2> ends;
    std::vector<Socket> sockets;
    int tokens = 0, cuts = 0;
    std::string trace;
    std::string key() const {
        std::string key;
        for (size_t e : {0, 1}) ends[e].encode(key, ends[1 - e]);
        for (const Socket& socket : sockets) socket.encode(key);
        key += static_cast<char>('0' + tokens);
        key += static_cast<char>('0' + cuts);
        return key;
    }
};

class Explorer : public test::Exploration<World> {
  public:
    /// If `patient`, no end gives up waiting because of a timeout.
    Explorer(int wants, int cuts, bool deaths, bool patient = false)
        : wants_(wants), cuts_(cuts), deaths_(deaths), patient_(patient) {}

    bool connected_once() const { return connected_; }

  private:
    /// Removes sockets that no end holds and that carry no hello.
    void tidy(World& world) override {
        for (int i = static_cast<int>(world.sockets.size()) - 1; i >= 0; --i) {
            if (world.sockets[static_cast<size_t>(i)].hello || world.ends[0].socket == i || world.ends[1].socket == i) continue;
            world.sockets.erase(world.sockets.begin() + i);
            for (End& end : world.ends)
                if (end.socket > i) --end.socket;
        }
    }
    /// Tries the event with and without a free slot for another connection.
    template <class F>
    void branch(const World& world, const std::string& label, F&& act) {
        for (const bool slot : {true, false}) {
            World next = world;
            next.trace += label + (slot ? " " : "!slot ");
            slot_ = slot;
            act(next);
            push(std::move(next));
        }
    }

    void expand(const World& world) override {
        bool moved = false;
        const auto move = [&](const std::string& label, auto&& act) {
            moved = true;
            branch(world, label, act);
        };
        for (size_t i = 0; i < world.sockets.size(); ++i)
            if (world.sockets[i].hello) move("hello", [&](World& w) { handle_hello(w, static_cast<int>(i)); });
        for (int e : {0, 1}) {
            const std::string who(1, static_cast<char>('0' + e));
            const End& end = world.ends[static_cast<size_t>(e)];
            if (end.dead) continue;
            if (!end.base.empty()) move(who + ":base", [&](World& w) { take_base(w, e); });
            if (end.wire == Wire::waiting && !patient_) move(who + ":accept-timeout", [&](World& w) { break_off(w, e); });
            if (end.wire == Wire::dialling) {
                const Socket& socket = world.sockets[static_cast<size_t>(end.socket)];
                if (socket.welcome && !socket.cut) move(who + ":welcome", [&](World& w) { welcome(w, e); });
                if (!patient_) move(who + ":no-answer", [&](World& w) { break_off(w, e); });
            }
            if (end.wire == Wire::open) look_at_socket(world, e, who, move);
            want(world, e, who);
            if (deaths_ && !world.ends[static_cast<size_t>(1 - e)].dead)
                branch(world, who + ":peer-dead", [&](World& w) {
                    w.ends[static_cast<size_t>(e)].dead = true;
                    w.ends[static_cast<size_t>(e)].deferred = 0;
                    apply(w, e, PeerConnectionEvent::peer_dead);
                });
        }
        if (!moved) check_at_rest(world);
    }
    template <class Move>
    void look_at_socket(const World& world, int e, const std::string& who, Move&& move) {
        const Socket& socket = world.sockets[static_cast<size_t>(world.ends[static_cast<size_t>(e)].socket)];
        const auto other = static_cast<size_t>(1 - e);
        if (socket.cut || (socket.closed[other] && !socket.finished[other]))
            move(who + ":broken", [&](World& w) { break_off(w, e); });
        else if (socket.finished[other] && !world.ends[static_cast<size_t>(e)].end_reported)
            move(who + ":ended", [&](World& w) {
                w.ends[static_cast<size_t>(e)].end_reported = true;
                apply(w, e, PeerConnectionEvent::close);
            });
        if (!socket.cut && world.cuts < cuts_)
            branch(world, "cut", [&](World& w) {
                ++w.cuts;
                w.sockets[static_cast<size_t>(w.ends[static_cast<size_t>(e)].socket)].cut = true;
            });
    }
    void want(const World& world, int e, const std::string& who) {
        const End& end = world.ends[static_cast<size_t>(e)];
        if (end.wants == wants_) return;
        const auto event =
            end.state == ConnectionState::closed ? PeerConnectionEvent::want_open : PeerConnectionEvent::want_close;
        if (end.state != ConnectionState::closed && end.state != ConnectionState::connected) return;
        branch(world, who + (event == PeerConnectionEvent::want_open ? ":want-open" : ":want-close"), [&](World& w) {
            ++w.ends[static_cast<size_t>(e)].wants;
            apply(w, e, event);
        });
    }

    void check_at_rest(const World& world) {
        const End &a = world.ends[0], &b = world.ends[1];
        for (const End* end : {&a, &b}) {
            if ((end->state == ConnectionState::closed) != (end->wire == Wire::none))
                fail(world, "at rest, a socket's state contradicts the connection's state");
            if (end->dead && end->state != ConnectionState::closed) fail(world, "state of a dead peer is not released");
        }
        if (a.dead || b.dead) return;
        const bool closed = a.state == ConnectionState::closed && b.state == ConnectionState::closed;
        const bool connected =
            a.state == ConnectionState::connected && b.state == ConnectionState::connected && a.socket == b.socket;
        connected_ |= connected;
        if (!closed && !connected) fail(world, "at rest, the two ends are in different states");
    }

    // --- Actions of transport/network/tcp ---

    void handle_hello(World& world, int index) {
        Socket& socket = world.sockets[static_cast<size_t>(index)];
        const int listener = 1 - socket.dialler;
        End& end = world.ends[static_cast<size_t>(listener)];
        socket.hello = false;
        if (end.dead || end.wire != Wire::waiting || end.token != socket.token) {
            if (patient_) fail(world, "an end dials a peer that does not listen");
            socket.refused = true;
            socket.closed[static_cast<size_t>(listener)] = true;
            return;
        }
        end.wire = Wire::open;
        end.socket = index;
        socket.welcome = true;
        apply(world, listener, PeerConnectionEvent::ready);
    }
    void welcome(World& world, int e) {
        End& end = world.ends[static_cast<size_t>(e)];
        world.sockets[static_cast<size_t>(end.socket)].welcome = false;
        end.wire = Wire::open;
        apply(world, e, PeerConnectionEvent::ready);
    }
    void break_off(World& world, int e) {
        End& end = world.ends[static_cast<size_t>(e)];
        close_socket(world, e);
        end.wire = Wire::idle;
        end.token = 0;
        apply(world, e, PeerConnectionEvent::broken);
    }
    void close_socket(World& world, int e) {
        End& end = world.ends[static_cast<size_t>(e)];
        if (end.socket >= 0) world.sockets[static_cast<size_t>(end.socket)].closed[static_cast<size_t>(e)] = true;
        end.socket = -1;
    }
    void dial(World& world, int e, int token) {
        End& end = world.ends[static_cast<size_t>(e)];
        if (end.wire == Wire::waiting) {
            if (e == 0) return;  // both ends asked: the lower end waits for the other end's socket
            end.wire = Wire::idle;
            end.token = 0;
        }
        if (end.wire != Wire::idle) return;
        end.wire = Wire::dialling;
        end.socket = static_cast<int>(world.sockets.size());
        Socket socket;
        socket.dialler = e;
        socket.token = token;
        world.sockets.push_back(socket);
    }

    // --- Actions of link ---

    void send(World& world, int e, PeerConnectionEvent event, int token = 0) {
        End &end = world.ends[static_cast<size_t>(e)], &peer = world.ends[static_cast<size_t>(1 - e)];
        const Stamp stamp = end.turns.stamp(event);
        if (!end.dead && !peer.dead) peer.base.push_back({event, token, stamp});
    }
    void apply(World& world, int e, PeerConnectionEvent event, int token = 0) {
        End& end = world.ends[static_cast<size_t>(e)];
        const ConnectionStep next = step(end.state, event, slot_);
        end.state = next.next;
        if (next.actions & kTakeSlot) {
            if (end.wire != Wire::none) fail(world, "an end opens a second connection with the same peer");
            end.wire = Wire::idle;
            end.end_reported = false;
        }
        if (next.actions & kUseOffer && event == PeerConnectionEvent::open) dial(world, e, token);
        if (next.actions & kSendOpen) {
            end.token = ++world.tokens;
            end.wire = Wire::waiting;
            send(world, e, PeerConnectionEvent::open, end.token);
        }
        if (next.actions & kSendAccept) send(world, e, PeerConnectionEvent::accept);
        if (next.actions & kSendRefuse) send(world, e, PeerConnectionEvent::refuse);
        if (next.actions & kSendClose) {
            if (end.wire != Wire::open) fail(world, "a close is sent without an open connection");
            world.sockets[static_cast<size_t>(end.socket)].finished[static_cast<size_t>(e)] = true;
        }
        if (next.actions & kGiveSlot) {
            if (end.wire == Wire::none) fail(world, "a connection is released that was not acquired");
            close_socket(world, e);
            end.wire = Wire::none;
            end.token = 0;
        }
        if (next.actions & kDefer) end.deferred = token;
        if (end.state == ConnectionState::closed && end.deferred) {
            const int deferred = end.deferred;
            end.deferred = 0;
            apply(world, e, PeerConnectionEvent::open, deferred);
        }
    }
    void take_base(World& world, int e) {
        End& end = world.ends[static_cast<size_t>(e)];
        const Packet packet = end.base.front();
        end.base.erase(end.base.begin());
        if (end.turns.concerns(end.state, packet.event, packet.stamp)) apply(world, e, packet.event, packet.token);
    }

    const int wants_, cuts_;
    const bool deaths_, patient_;
    bool slot_ = true, connected_ = false;
};

TEST(TcpConnectionState, EveryOrderOfEventsEndsInAgreement) {
    Explorer explorer(3, 0, false);
    explore(explorer);
    EXPECT_TRUE(explorer.connected_once());
}

// The reply to an open packet may arrive, as a datagram, after the connection was used and closed.
TEST(TcpConnectionState, ALateAnswerOpensNoSocket) {
    Explorer explorer(4, 0, false, true);
    explore(explorer);
    EXPECT_TRUE(explorer.connected_once());
}

TEST(TcpConnectionState, BrokenSocketsInEveryOrder) {
    Explorer explorer(2, 1, false);
    explore(explorer);
    EXPECT_TRUE(explorer.connected_once());
}

TEST(TcpConnectionState, ADeadPeersConnectionSlotIsReleased) {
    Explorer explorer(1, 1, true);
    explore(explorer);
}

}  // namespace
}  // namespace starling::link
