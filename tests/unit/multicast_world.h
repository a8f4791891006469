// A simulated network with its own clock, for tests of multicast groups: it loses, duplicates and delays datagrams.
#pragma once

#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <random>
#include <vector>

#include "multicast/group.h"

namespace starling::multicast::testing {

struct Weather {
    double loss = 0, twice = 0;
    uint64_t late_ns = 0;  ///< longest extra delay of a datagram, so that some overtake others
    uint64_t latency_ns = 10'000;
};

class World;

struct Member final : GroupEnvironment {
    World& world;
    const uint32_t me;
    ReceiveQueue desk;
    MulticastGroup group;
    bool in_network = false, dead = false, deaf = false;
    bool refuses = false;           ///< whether the member refuses to join the group
    bool mute = false;              ///< whether the member's datagrams to the group are lost
    int rail = 0;                   ///< number (0 or 1) of the rail by which the member sends
    int deaf_rail = -1;             ///< rail from which the member receives nothing; -1: none
    uint64_t slow_ns = 0;           ///< extra latency of the member's sessions in ns
    int mute_rail = -1;             ///< rail on which the member's datagrams are lost; -1: none
    uint32_t longest = UINT32_MAX;  ///< longest datagram in bytes, without the header, that the member's interface can send

    Member(World& its_world, uint32_t index, const std::vector<MemberName>& names, const GroupSettings& settings);
    bool to_group(const GroupDatagramHeader& head, const std::byte* body, uint32_t bytes) override;
    bool to_member(uint32_t to, const GroupDatagramHeader& head, const std::byte* body, uint32_t bytes) override;
    void note(uint32_t to, const Note& note) override;
    bool join() override { return !refuses && (in_network = true); }
    void leave() override { in_network = false; }
    void flush() override {}
    void report_unreachable() override { rail ^= 1; }
    MessageLabel label(uint32_t sender, uint64_t context, uint64_t call) const {
        return {group.members()[sender].job, context, call, group.members()[sender].rank};
    }
};

class World {
  public:
    World(uint32_t members, const Weather& its_weather, uint32_t seed, uint32_t piece = 256)
        : weather(its_weather), random(seed) {
        for (uint32_t i = 0; i < members; ++i) names.push_back({7, i});
        for (uint32_t i = 0; i < members; ++i) {
            GroupSettings settings;
            settings.key = 99, settings.epoch = 1000 + i, settings.fragment_bytes = piece, settings.patience_ns = 400'000'000;
            all.push_back(std::make_unique<Member>(*this, i, names, settings));
        }
    }

    Member& operator[](uint32_t member) { return *all[member]; }
    uint32_t size() const { return static_cast<uint32_t>(all.size()); }
    bool chance(double p) { return p > 0 && std::uniform_real_distribution<>(0, 1)(random) < p; }
    uint64_t up_to(uint64_t most) { return most == 0 ? 0 : random() % (most + 1); }

    void later(uint64_t after, std::function<void()> what) { events.push({now + after, ++count, std::move(what)}); }
    /// Runs `what` at the receiver, in order; later if either side's sessions are slow.
    void by_session(uint32_t from, uint32_t to, std::function<void()> what) {
        uint64_t& last = last_by_session[{from, to}];
        last = std::max(last, now + weather.latency_ns + std::max(all[from]->slow_ns, all[to]->slow_ns));
        later(last - now, std::move(what));
    }
    /// Runs the next event and all members' due timers. Returns false if no event or timer is left.
    bool step() {
        uint64_t next = events.empty() ? UINT64_MAX : events.top().at;
        for (const auto& one : all)
            if (!one->dead) next = std::min(next, std::max(now, one->group.deadline()));
        if (next == UINT64_MAX) return false;
        now = std::max(now, next);
        while (!events.empty() && events.top().at <= now) {
            const auto what = events.top().what;
            events.pop();
            what();
        }
        for (const auto& one : all)
            if (!one->dead && one->group.deadline() <= now) one->group.run(now);
        return true;
    }
    template <class F>
    bool run_until(F condition, uint64_t limit_ns) {
        const uint64_t end = now + limit_ns;
        while (!condition())
            if (now > end || !step()) return condition();
        return true;
    }
    bool all_ready() const {
        for (const auto& one : all)
            if (!one->dead && one->group.state() != GroupState::ready) return false;
        return true;
    }
    /// Stops the member; the others are notified of its death after 20 ms.
    void kill(uint32_t member) {
        all[member]->dead = true;
        later(20'000'000, [this, member] {
            for (const auto& one : all)
                if (!one->dead) one->group.on_out(member, true, now);
        });
    }

    Weather weather;
    std::mt19937_64 random;
    uint64_t now = 1'000'000'000;
    std::vector<MemberName> names;
    std::vector<std::unique_ptr<Member>> all;
    uint64_t lose = 0;  ///< number, from 1, of the datagram that is lost to all; 0: none
    uint64_t datagrams = 0, singles = 0, notes = 0;

  private:
    struct Event {
        uint64_t at, order;
        std::function<void()> what;
        bool operator<(const Event& other) const { return std::pair(at, order) > std::pair(other.at, other.order); }
    };
    std::priority_queue<Event> events;
    std::map<std::pair<uint32_t, uint32_t>, uint64_t> last_by_session;
    uint64_t count = 0;
};

inline Member::Member(World& its_world, uint32_t index, const std::vector<MemberName>& names, const GroupSettings& settings)
    : world(its_world), me(index), group(names, index, settings, *this, desk) {}

inline bool Member::to_group(const GroupDatagramHeader& head, const std::byte* body, uint32_t bytes) {
    if (++world.datagrams == world.lose || mute || rail == mute_rail) return true;
    const uint32_t carried = header_bytes(head);
    auto whole = std::make_shared<std::vector<std::byte>>(carried + bytes);
    std::memcpy(whole->data(), &head, carried);
    if (bytes > 0) std::memcpy(whole->data() + carried, body, bytes);
    for (uint32_t i = 0; i < world.size(); ++i) {
        if (i == me) continue;
        for (int copies = world.chance(world.weather.loss)    ? 0
                          : world.chance(world.weather.twice) ? 2
                                                              : 1;
             copies > 0; --copies)
            world.later(
                world.weather.latency_ns + world.up_to(world.weather.late_ns), [&to = world[i], whole, bytes, by = rail] {
                    GroupDatagram datagram;
                    const bool hears = to.in_network && !to.dead && !to.deaf && by != to.deaf_rail && bytes <= to.longest;
                    if (hears && decode(whole->data(), whole->size(), to.world.size(), datagram))
                        to.group.on_datagram(datagram, to.world.now);
                });
    }
    return true;
}

inline bool Member::to_member(uint32_t i, const GroupDatagramHeader& head, const std::byte* body, uint32_t bytes) {
    ++world.singles;
    const uint32_t carried = header_bytes(head);
    auto whole = std::make_shared<std::vector<std::byte>>(carried + bytes);
    std::memcpy(whole->data(), &head, carried);
    if (bytes > 0) std::memcpy(whole->data() + carried, body, bytes);
    world.by_session(me, i, [&to = world[i], from = me, whole] {
        GroupDatagram datagram;
        if (!to.dead && decode(whole->data(), whole->size(), to.world.size(), datagram))
            to.group.on_single(from, datagram, to.world.now);
    });
    return true;
}

inline void Member::note(uint32_t i, const Note& note) {
    ++world.notes;
    world.by_session(me, i, [&to = world[i], from = me, note] {
        if (!to.dead) to.group.on_note(from, note, to.world.now);
    });
}

}  // namespace starling::multicast::testing
