// The inside of an endpoint, shared by its files.
#pragma once

#include <cstdlib>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/list.h"
#include "transport/network/crypto/sealed_datagram.h"
#include "transport/network/datagram/endpoint.h"
#include "transport/network/datagram/gid_pairs.h"
#include "transport/network/datagram/rails.h"
#include "transport/network/datagram/udp.h"
#include "transport/network/session/session.h"
#include "transport/verbs/ports.h"

namespace starling::network {

/// A session with what the endpoint knows of where the peer is.
struct Member final : Session {
    using Session::Session;
    uint32_t addresses[kMaxAddresses] = {};  ///< network byte order
    uint8_t address_count = 0;
    bool dirty = false;  ///< in State::dirty: something is to be sent when the batch ends
    uint16_t port = 0;   ///< host byte order; 0: not known
    int lane = Destination::kNoLane;
    uint32_t heat = 0;  ///< datagrams sent to it, as of the span of time heated_at: see heat_of()
    uint64_t heated_at = 0;
    DatagramLock* lock = nullptr;  ///< if what is sent is sealed

    std::unique_ptr<PortAddresses> ports;  ///< that the peer has told; null: none
    uint32_t told = 0;                     ///< version of our own that it knows; 0: it has not been told
    bool waits_for_port = false;           ///< in Verbs::waiting
};

struct NameHash {
    size_t operator()(const Name& name) const { return static_cast<size_t>(name.job ^ name.rank * 0x9e3779b97f4a7c15u); }
};

/// A datagram whose sender link has to find first. Kept for a while: the sender may have ended, and not repeat it.
struct Held {
    struct Free {
        void operator()(std::byte* data) const { std::free(data); }
    };
    ReceivedDatagram arrival;
    uint64_t since;
    std::unique_ptr<std::byte, Free> data;
};

/// What a process has that encrypts.
struct Sealing {
    std::unique_ptr<Cipher> cipher;
    job::NetworkSecret secret;  ///< our job's
    std::unordered_map<Name, std::unique_ptr<DatagramLock>, NameHash>
        locks;                            ///< with those who have opened one, or that link knows
    std::unique_ptr<std::byte[]> places;  ///< of sealed datagrams, until they are sent
    uint32_t next = 0;
};

/// What a process has that uses InfiniBand or RoCE.
struct Verbs {
    std::unique_ptr<verbs::Ports> ports;
    uint32_t version = 0;        ///< of the ports, as the members' paths are
    ReceivedDatagram arrival{};  ///< the one that is being taken, if any
    bool taking = false;
    bool to_group = false;         ///< something that came was to a group, since the poll began
    int came = 0, taken = 0;       ///< datagrams of the last poll, and how many of them are done with
    std::vector<Member*> waiting;  ///< a port was too busy for what they had to send
    bool sockets_last = true;      ///< brought something, not the ports
    uint64_t sockets_at = 0;       ///< ns, when they did,
    uint64_t looked_at = 0;        ///< and when the kernel was asked after them
    uint64_t sent = 0, received = 0, busy = 0;
};

struct Endpoint::State final : SessionEnvironment {
    // Outside
    void send(Session& session, const Route& route, uint32_t number, const iovec* parts, int count) override;
    void flush() override { udp.flush(); }
    void deliver(Session& session, const packet::Header& header, const std::byte* payload) override {
        // Also where there is no port of ours: one may come.
        if (header.kind == packet::Kind::ports) [[unlikely]]
            return take_ports(static_cast<Member&>(session), payload, header.bytes);
        upcalls.deliver(session.user, header, payload);
    }
    void unreachable(Session& session) override { upcalls.unreachable(session.user); }
    uint64_t new_epoch() override;

    // endpoint.cpp
    int open(const Identity& who, const Upcalls& calls);
    int open_rails();
    void watch_rails();
    uint32_t own_address() const;
    /// Those of the chosen rails that have come since.
    void open_doors();
    /// Before rails are asked for anything.
    void need_rails();
    void find_paths(Member& member);
    uint32_t& place_for_address(Member& member) const;
    void learn(Member& member, const ReceivedDatagram& arrival);
    int path_of(const Member& member, const ReceivedDatagram& arrival) const;
    /// Sends what may be sent, now or when the batch ends, and sees to it that the session's timer is served.
    void serve(Member& member, uint64_t now);
    bool mark_dirty(Member& member);
    void watch(Member& member);
    /// All that is counted, of datagrams and of sessions.
    Counters sum() const;

    // connected_sockets.cpp
    /// Datagrams sent to it of late.
    uint32_t heat_of(const Member& member) const;
    /// Counts a datagram to a place, and chooses the socket that it goes by.
    int lane_for(Member& member, const Destination& where);
    int seek_lane(Member& member, const Destination& where);
    /// The peer may be elsewhere now.
    void leave_lane(Member& member);

    // encryption.cpp
    int open_sealing();
    std::unique_ptr<DatagramLock> make_lock(const Name& peer);
    DatagramLock* lock_with(const Name& peer);
    void forget_locks(job::JobId job);
    void seal(const Member& member, const iovec* parts, int count, iovec (&sealed)[2]);
    bool unseal(ReceivedDatagram& arrival, bool& kept);

    // ud_queue.cpp
    void adopt(std::unique_ptr<verbs::Ports> ports);
    void send_by_verbs(Member& member, const Route& route, uint32_t number, const iovec* parts, int count);
    /// Whether the sockets may be left out this time.
    bool poll_verbs(uint64_t now);
    bool take_what_came(uint64_t now);
    void sockets_brought(uint64_t now);
    void follow_ports(uint64_t now);
    void wake_those_who_wait(uint64_t now);
    /// Tells the peer how we are reached, if it does not know and something goes there, or it is known to have ports.
    void tell_ports(Member& member, uint64_t now);
    void take_ports(Member& member, const std::byte* payload, uint32_t bytes);
    /// The routes by verbs to the peer, at most `most`, with the longest datagrams.
    int verbs_routes(const Member& member, Route* routes, uint32_t* datagrams, int most) const;
    void publish_verbs();

    // endpoint_poll.cpp
    struct Polling;
    bool poll(uint64_t now);
    uint32_t what_came();
    void forgive(uint64_t now);
    /// False if nobody wants a session with the sender (yet).
    bool take(ReceivedDatagram& arrival, uint64_t now);
    void hold(const ReceivedDatagram& arrival, uint64_t now);
    void take_held(uint64_t now);
    Member* member_for(const Datagram& datagram);
    bool answer_all(uint64_t now);
    void run_timers(uint64_t now);
    void follow_rails(uint64_t now);
    void publish();

    Identity identity;
    Upcalls upcalls;
    Udp udp;
    InterfaceFilter rail_choice;
    Rails rails;
    bool rails_open = false;
    std::unique_ptr<Sealing> sealing;  ///< null: nothing is sealed
    std::unique_ptr<Verbs> verbs;      ///< null: there are no ports
    struct Lane {
        Member* user = nullptr;
        Destination where;
        bool open = false;
    };
    Lane lanes[Udp::kLanes];
    uint64_t span = 0;  ///< of time, for the members' heat
    int epoll = -1;
    static constexpr uint32_t kRails = 1u << Udp::kSockets;  ///< behind the sockets' bits
    static constexpr uint32_t kPorts = kRails << 1;
    std::unordered_map<Name, std::unique_ptr<Member>, NameHash> members;
    Member* last = nullptr;  ///< whose datagram came last
    List<Session, &Session::active_hook> active;
    uint64_t earliest = UINT64_MAX;  ///< no deadline is before this
    uint64_t rails_at = 0;           ///< when to look for changes of rails
    uint64_t last_epoch = 0;
    uint64_t now = 0;  ///< of the poll that runs, or the last one
    int batches = 0;
    bool polling = false;
    int arrived = 0, taken = 0;  ///< datagrams of the last receive(), and how many of them are done with
    bool room_made = false;
    std::vector<Member*> dirty;    ///< to be sent from when the batch ends
    std::vector<Member*> touched;  ///< had datagrams in this poll
    std::vector<Held> held;        ///< datagrams of those that link does not know yet
    Counters totals;               ///< those of datagrams; `counters` has the sessions'
};

}  // namespace starling::network
