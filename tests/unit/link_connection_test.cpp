// The connection's state machine, in every order of events: two ends, a base path and a ring each way. Each path is reliable and ordered;
// between the paths any order is possible.
#include "link/connection.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>

#include "exploration.h"

namespace starling::link {
namespace {

// Packets as letters; digits are messages. Open, accept and refuse are followed by a stamp of two letters.
constexpr char kOpen = 'o', kAccept = 'a', kRefuse = 'r', kClose = 'c';

bool has_stamp(char packet) { return packet == kOpen || packet == kAccept || packet == kRefuse; }
PeerConnectionEvent event_of(char packet) {
    if (packet == kOpen) return PeerConnectionEvent::open;
    return packet == kAccept ? PeerConnectionEvent::accept : PeerConnectionEvent::refuse;
}
/// Removes and returns the first packet of a queue, with its stamp.
std::string take_first(std::string& queue) {
    std::string first = queue.substr(0, has_stamp(queue[0]) ? 3 : 1);
    queue.erase(0, first.size());
    return first;
}

/// One end: carries out the decisions of step() as link/manager and link/paths do.
struct End {
    ConnectionState state = ConnectionState::closed;
    bool has_slot = false;  ///< a ring in our memory, for the peer to write to
    bool sends_on_ring = false;
    bool close_pending = false;
    bool open_deferred = false;
    bool dead = false;       ///< whether this end has noticed the peer's death
    std::string controls;    ///< control packets that wait for room on a path
    std::string base, ring;  ///< packets in transit to this end, by path
    std::string received;    ///< received messages, sorted
    int sent = 0, wants = 0;
    PeerConnectionState turns;

    /// Encodes stamps relative to the current counts, because only their distance matters.
    void encode_stamps(std::string& key, std::string queue, const PeerConnectionState& sender,
                       const PeerConnectionState& receiver) const {
        while (!queue.empty()) {
            std::string packet = take_first(queue);
            if (packet.size() == 3) {
                packet[1] = static_cast<char>('0' + sender.so_far().sent - (packet[1] - '0'));
                packet[2] = static_cast<char>('0' + receiver.so_far().sent - (packet[2] - '0'));
            }
            key += packet;
        }
        key += '|';
    }
    void encode(std::string& key, const End& peer) const {
        key += static_cast<char>('0' + static_cast<int>(state));
        key += static_cast<char>('0' + (has_slot | sends_on_ring << 1 | close_pending << 2 | open_deferred << 3 | dead << 4));
        key += static_cast<char>('0' + sent);
        key += static_cast<char>('0' + wants);
        key += static_cast<char>('0' + turns.unanswered());
        key += static_cast<char>('0' + peer.turns.so_far().sent - turns.so_far().received);
        key += static_cast<char>('0' + turns.crossed());
        encode_stamps(key, controls, turns, peer.turns);
        encode_stamps(key, base, peer.turns, turns);
        (key += ring) += '|';
        (key += received) += '|';
    }
};

struct World {
    std::array<End, 2> ends;
    std::string trace;
    std::string key() const {
        std::string key;
        for (size_t e : {0, 1}) ends[e].encode(key, ends[1 - e]);
        return key;
    }
};

class Explorer : public test::Exploration<World> {
  public:
    Explorer(int wants, int messages, bool deaths) : wants_(wants), messages_(messages), deaths_(deaths) {}

    bool connected_once() const { return both_connected_; }

  private:
    /// Tries all combinations: `room`, whether a packet finds room at once; `slot`, whether a slot is free.
    template <class F>
    void branch(const World& world, const std::string& label, F&& act) {
        for (const bool room : {true, false})
            for (const bool slot : {true, false}) {
                World next = world;
                next.trace += label + (room ? "" : "!room") + (slot ? "" : "!slot") + " ";
                room_ = room;
                slot_ = slot;
                act(next);
                push(std::move(next));
            }
    }

    void expand(const World& world) override {
        bool moved = false;
        for (int e : {0, 1}) {
            const std::string who(1, static_cast<char>('A' + e));
            const End& end = world.ends[e];
            if (end.dead) continue;  // a dead end receives no events
            if (!end.base.empty()) moved = true, branch(world, who + ":base ", [&](World& w) { take_base(w, e); });
            const bool readable =
                end.has_slot && !end.ring.empty() && !(end.ring[0] == kClose && end.state == ConnectionState::connecting);
            if (readable) moved = true, branch(world, who + ":ring ", [&](World& w) { adopt_ring(w, e); });
            if (!end.controls.empty() || end.close_pending)
                moved = true, branch(world, who + ":flush ", [&](World& w) { flush(w, e); });
            if (end.wants < wants_) {
                if (end.state == ConnectionState::closed && !end.close_pending)
                    branch(world, who + ":want_open ",
                           [&](World& w) { ++w.ends[e].wants, apply(w, e, PeerConnectionEvent::want_open); });
                if (end.state == ConnectionState::connected)
                    branch(world, who + ":want_close ",
                           [&](World& w) { ++w.ends[e].wants, apply(w, e, PeerConnectionEvent::want_close); });
            }
            if (end.sent < messages_) branch(world, who + ":send ", [&](World& w) { send_message(w, e); });
            if (deaths_ && !world.ends[1 - e].dead)
                branch(world, who + ":peer_dead ", [&](World& w) {
                    w.ends[e].dead = true;
                    w.ends[e].sends_on_ring = w.ends[e].close_pending = w.ends[e].open_deferred = false;
                    apply(w, e, PeerConnectionEvent::peer_dead);
                    w.ends[e].controls.clear();
                });
        }
        if (!moved) check_at_rest(world);
    }

    void check_at_rest(const World& world) {
        const End &a = world.ends[0], &b = world.ends[1];
        for (const End* end : {&a, &b})
            if (end->dead && (end->state != ConnectionState::closed || end->has_slot || end->sends_on_ring))
                fail(world, "state of a dead peer is not released");
        if (a.dead || b.dead) return;
        const bool closed = a.state == ConnectionState::closed && b.state == ConnectionState::closed;
        const bool connected = a.state == ConnectionState::connected && b.state == ConnectionState::connected;
        both_connected_ |= connected;
        if (!closed && !connected) return fail(world, "at rest, the two ends are in different states");
        for (const End* end : {&a, &b}) {
            if (end->has_slot != connected || end->sends_on_ring != connected)
                fail(world, "at rest, a slot's use contradicts the connection's state");
            if (end->open_deferred) fail(world, "at rest, an open is still deferred");
            if (!end->ring.empty()) fail(world, "at rest, a packet is left in a ring");
        }
        if (static_cast<int>(a.received.size()) != b.sent || static_cast<int>(b.received.size()) != a.sent)
            fail(world, "a message is lost");
    }

    bool to_ring(const End& end) const { return end.sends_on_ring && !end.close_pending; }

    void put(World& world, int e, const std::string& packet) {
        End& peer = world.ends[1 - e];
        if (!to_ring(world.ends[e])) {
            peer.base += packet;
        } else {
            if (!peer.has_slot && !peer.dead) fail(world, "a packet is written into a reassigned slot");
            peer.ring += packet;
        }
    }

    void send_control(World& world, int e, char letter) {
        End& end = world.ends[e];
        const Stamp stamp = end.turns.stamp(event_of(letter));
        const std::string packet{letter, static_cast<char>('0' + stamp.sent), static_cast<char>('0' + stamp.received)};
        if (end.controls.empty() && room_)
            put(world, e, packet);
        else
            end.controls += packet;
    }

    void send_message(World& world, int e) { put(world, e, std::to_string(world.ends[e].sent++)); }

    bool try_close(World& world, int e) {
        End& end = world.ends[e];
        if (!end.controls.empty() || !room_) return false;
        if (!end.sends_on_ring) {
            fail(world, "a close is sent without a ring that could carry it");
            return true;
        }
        world.ends[1 - e].ring += kClose;
        end.sends_on_ring = end.close_pending = false;
        return true;
    }

    void flush(World& world, int e) {
        End& end = world.ends[e];
        if (!room_) return;
        if (!end.controls.empty()) {
            put(world, e, take_first(end.controls));
        } else if (end.close_pending) {
            try_close(world, e);
        }
    }

    void acquire_slot(World& world, int e) {
        End& end = world.ends[e];
        if (end.has_slot) fail(world, "a second slot is acquired");
        if (world.ends[1 - e].sends_on_ring) fail(world, "a slot is reset while the peer writes to one");
        if (!end.ring.empty()) fail(world, "a slot is reset with packets in it");
        end.has_slot = true;
    }

    void release_slot(World& world, int e) {
        End &end = world.ends[e], &peer = world.ends[1 - e];
        if (!end.has_slot) fail(world, "a slot is released that was not acquired");
        end.has_slot = false;
        if (end.dead) {
            end.ring.clear();
            return;
        }
        if (peer.sends_on_ring && !peer.dead) fail(world, "a slot is released while the peer writes to it");
        if (!end.ring.empty()) fail(world, "a slot is released with packets in it");
        const std::string coming = peer.base + peer.ring + end.controls;
        if (!peer.dead &&
            (coming.find(kOpen) != std::string::npos || coming.find(kAccept) != std::string::npos || peer.open_deferred))
            fail(world, "a slot is released while its offer is in transit");
    }

    void apply(World& world, int e, PeerConnectionEvent event) {
        End& end = world.ends[e];
        const ConnectionStep next = step(end.state, event, slot_);
        end.state = next.next;
        if (next.actions & kTakeSlot) acquire_slot(world, e);
        if (next.actions & kUseOffer) {
            if (end.sends_on_ring || end.close_pending) fail(world, "an offer replaces a ring in use");
            if (!world.ends[1 - e].has_slot && !world.ends[1 - e].dead)
                fail(world, "an offer of a slot that is not held is used");
            end.sends_on_ring = true;
            apply(world, e, PeerConnectionEvent::ready);
        }
        if (next.actions & kSendOpen) send_control(world, e, kOpen);
        if (next.actions & kSendAccept) send_control(world, e, kAccept);
        if (next.actions & kSendRefuse) send_control(world, e, kRefuse);
        if (next.actions & kSendClose) {
            end.close_pending = true;
            try_close(world, e);
        }
        if (next.actions & kGiveSlot) release_slot(world, e);
        if (next.actions & kDefer) {
            if (end.open_deferred) fail(world, "a second open is deferred");
            end.open_deferred = true;
        }
        if (end.state == ConnectionState::closed && end.open_deferred) {
            end.open_deferred = false;
            apply(world, e, PeerConnectionEvent::open);
        }
    }

    void take(World& world, int e, const std::string& packet) {
        End& end = world.ends[e];
        if (packet.size() == 3) {
            const Stamp stamp{static_cast<uint16_t>(packet[1] - '0'), static_cast<uint16_t>(packet[2] - '0')};
            if (end.turns.concerns(end.state, event_of(packet[0]), stamp)) apply(world, e, event_of(packet[0]));
            return;
        }
        if (packet[0] == kClose) return apply(world, e, PeerConnectionEvent::close);
        if (end.received.find(packet) != std::string::npos) fail(world, "a message was delivered twice");
        end.received.insert(std::upper_bound(end.received.begin(), end.received.end(), packet[0]), packet[0]);
    }

    void take_base(World& world, int e) { take(world, e, take_first(world.ends[e].base)); }
    void adopt_ring(World& world, int e) { take(world, e, take_first(world.ends[e].ring)); }

    const int wants_, messages_;
    const bool deaths_;
    bool room_ = true, slot_ = true;
    bool both_connected_ = false;
};

TEST(ConnectionState, EveryOrderOfEventsEndsInAgreement) {
    Explorer explorer(8, 0, false);
    explore(explorer);
    EXPECT_TRUE(explorer.connected_once());
}

TEST(ConnectionState, NoMessageIsLostInAnyOrder) {
    Explorer explorer(3, 2, false);
    explore(explorer);
    EXPECT_TRUE(explorer.connected_once());
}

TEST(ConnectionState, ADeadPeersRingSlotIsReleased) {
    Explorer explorer(2, 1, true);
    explore(explorer);
}

TEST(ConnectionState, WithoutAFreeSlotNoEndWaitsForever) {
    EXPECT_EQ(step(ConnectionState::closed, PeerConnectionEvent::want_open, false).next, ConnectionState::closed);
    EXPECT_EQ(step(ConnectionState::closed, PeerConnectionEvent::want_open, false).actions, kNothing);
    EXPECT_EQ(step(ConnectionState::closed, PeerConnectionEvent::open, false).actions, kSendRefuse);
    EXPECT_EQ(step(ConnectionState::connecting, PeerConnectionEvent::refuse, false).next, ConnectionState::closed);
}

TEST(ConnectionState, LateAndDuplicatePacketsChangeNothing) {
    for (const ConnectionState state : {ConnectionState::closed, ConnectionState::connected, ConnectionState::quiescing})
        for (const PeerConnectionEvent event : {PeerConnectionEvent::accept, PeerConnectionEvent::refuse}) {
            EXPECT_EQ(step(state, event, true).next, state) << name(state);
            EXPECT_EQ(step(state, event, true).actions, kNothing) << name(state);
        }
}

}  // namespace
}  // namespace starling::link
