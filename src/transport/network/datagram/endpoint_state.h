// The internal state of an endpoint, shared by the files that implement it.
#pragma once

#include <cstdlib>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/free_deleter.h"
#include "base/list.h"
#include "transport/network/crypto/sealed_datagram.h"
#include "transport/network/datagram/endpoint.h"
#include "transport/network/datagram/gid_pairs.h"
#include "transport/network/datagram/rails.h"
#include "transport/network/datagram/udp.h"
#include "transport/network/session/session.h"
#include "transport/verbs/ports.h"

namespace starling::network {

/// A session, with what the endpoint knows about the peer's addresses.
struct EndpointPeer final : Session {
    using Session::Session;
    uint32_t addresses[kMaxAddresses] = {};  ///< IPv4 addresses of the peer, network byte order
    uint8_t address_count = 0;
    bool dirty = false;  ///< whether the peer is listed in EndpointState::dirty: data is to be sent when the batch ends
    uint16_t port = 0;   ///< UDP port of the peer, host byte order; 0: unknown
    int lane = Destination::kNoLane;
    uint32_t heat = 0;  ///< recent datagrams to the peer, as of the interval `heated_at`: see heat_of()
    uint64_t heated_at = 0;
    DatagramLock* lock = nullptr;  ///< keys and replay window shared with the peer; null: datagrams are not sealed

    std::unique_ptr<PortAddresses> ports;  ///< the peer's port list; null: it has sent none
    uint32_t known_version = 0;            ///< version of our port list that was sent to the peer; 0: none
    bool waits_for_port = false;           ///< whether the peer is listed in VerbsState::waiting
};

struct NameHash {
    size_t operator()(const PeerName& name) const { return static_cast<size_t>(name.job ^ name.rank * 0x9e3779b97f4a7c15u); }
};

/// A datagram whose sender link does not know yet. It is kept for a while, since its sender may have ended and then does not repeat it.
struct Held {
    ReceivedDatagram arrival;
    uint64_t since;
    std::unique_ptr<std::byte, FreeDeleter> data;
};

/// The state for encrypted datagrams.
struct Sealing {
    std::unique_ptr<Cipher> cipher;
    job::NetworkSecret secret;  ///< secret of this process's job
    /// The locks (keys and replay windows) of peers that have sent an authentic datagram, or that link knows.
    std::unordered_map<PeerName, std::unique_ptr<DatagramLock>, NameHash> locks;
    std::unique_ptr<std::byte[]> places;  ///< buffers of sealed datagrams until they are sent
    uint32_t next = 0;
};

/// The state for InfiniBand or RoCE ports.
struct VerbsState {
    std::unique_ptr<verbs::Ports> ports;
    uint32_t version = 0;        ///< version of the port list that the members' paths are based on
    ReceivedDatagram arrival{};  ///< datagram that is being handled, if any
    bool taking = false;
    bool to_group = false;               ///< whether a datagram for a group has arrived since the poll began
    int came = 0, taken = 0;             ///< number of datagrams of the last poll, and of those handled so far
    std::vector<EndpointPeer*> waiting;  ///< peers for which a port was too busy to send
    bool sockets_last = true;            ///< whether the sockets, not the ports, received the last datagram
    uint64_t sockets_at = 0;             ///< time (ns) when the sockets last received something
    uint64_t polled_at = 0;              ///< time (ns) when the kernel was last asked which sockets are readable
    uint64_t sent = 0, received = 0, busy = 0;
};

struct Endpoint::EndpointState final : SessionEnvironment {
    // Implementation of SessionEnvironment.
    void send(Session& session, const Route& route, uint32_t number, const iovec* parts, int count) override;
    void flush() override { udp.flush(); }
    /// Stores the port list even while this process has no port, since one may appear later.
    void handle_ports(Session& session, const std::byte* payload, uint32_t bytes) override;
    void unreachable(Session& session) override { upcalls.unreachable(session.user); }
    uint64_t new_epoch() override;

    // Functions of endpoint.cpp.
    int open(const EndpointIdentity& who, const EndpointUpcalls& calls);
    int open_rails();
    void watch_rails();
    uint32_t own_address() const;
    /// Opens sockets for selected rails that have appeared since the last call.
    void open_doors();
    /// Opens the rails if they are not open yet; call before using them.
    void need_rails();
    void find_paths(EndpointPeer& member);
    uint32_t& place_for_address(EndpointPeer& member) const;
    void learn(EndpointPeer& member, const ReceivedDatagram& arrival);
    int path_of(const EndpointPeer& member, const ReceivedDatagram& arrival) const;
    /// Sends what the session may send, now or when the batch ends, and ensures that the session's timer runs.
    void serve(EndpointPeer& member, uint64_t now);
    bool mark_dirty(EndpointPeer& member);
    void watch(EndpointPeer& member);
    /// Returns the counters of datagrams and of all sessions together.
    EndpointCounters sum() const;

    // Functions of connected_sockets.cpp.
    /// Returns the number of datagrams recently sent to the peer, in which older ones count less.
    uint32_t heat_of(const EndpointPeer& member) const;
    /// Counts a datagram to the destination, and returns the lane (connected socket) that sends it.
    int lane_for(EndpointPeer& member, const Destination& where);
    int seek_lane(EndpointPeer& member, const Destination& where);
    /// Frees the peer's lane, because its address may have changed.
    void leave_lane(EndpointPeer& member);

    // Functions of encryption.cpp.
    int open_sealing();
    std::unique_ptr<DatagramLock> make_lock(const PeerName& peer);
    DatagramLock* lock_with(const PeerName& peer);
    void forget_locks(job::JobId job);
    void seal(const EndpointPeer& member, const iovec* parts, int count, iovec (&sealed)[2]);
    bool unseal(ReceivedDatagram& arrival, bool& kept);

    // Functions of ud_queue.cpp.
    void adopt(std::unique_ptr<verbs::Ports> ports);
    void send_by_verbs(EndpointPeer& member, const Route& route, uint32_t number, const iovec* parts, int count);
    /// Polls the verbs ports. Returns whether the sockets may be skipped in this poll.
    bool poll_verbs(uint64_t now);
    bool receive_ready(uint64_t now);
    void sockets_brought(uint64_t now);
    void follow_ports(uint64_t now);
    void wake_waiting(uint64_t now);
    /// Sends our port list to the peer, unless the peer has it. Sends nothing to a peer that has no ports, if no data waits for it.
    void send_ports(EndpointPeer& member, uint64_t now);
    /// Writes the verbs routes to the peer, at most `most`, with the longest datagram of each; returns their number.
    int verbs_routes(const EndpointPeer& member, Route* routes, uint32_t* datagrams, int most) const;
    void publish_verbs();

    // Functions of endpoint_poll.cpp.
    struct Polling;
    bool poll(uint64_t now);
    uint32_t ready_sockets();
    void forgive(uint64_t now);
    /// Handles a datagram. Returns false if there is no session for its sender (yet).
    bool handle(ReceivedDatagram& arrival, uint64_t now);
    void hold(const ReceivedDatagram& arrival, uint64_t now);
    void deliver_held(uint64_t now);
    EndpointPeer* member_for(const Datagram& datagram);
    bool answer_all(uint64_t now);
    void run_timers(uint64_t now);
    void follow_rails(uint64_t now);
    void publish();

    EndpointIdentity identity;
    EndpointUpcalls upcalls;
    Udp udp;
    InterfaceFilter rail_choice;
    Rails rails;
    bool rails_open = false;
    std::unique_ptr<Sealing> sealing;   ///< state of encryption; null: nothing is sealed
    std::unique_ptr<VerbsState> verbs;  ///< state of the verbs ports; null: there are none
    struct ConnectedSocket {
        EndpointPeer* user = nullptr;
        Destination where;
        bool open = false;
    };
    ConnectedSocket lanes[Udp::kLanes];
    uint64_t span = 0;  ///< number of the current interval, for the members' heat
    int epoll = -1;
    static constexpr uint32_t kRails = 1u << Udp::kSockets;  ///< bit in the sockets' bit set for the rails' netlink socket
    static constexpr uint32_t kPorts = kRails << 1;
    std::unordered_map<PeerName, std::unique_ptr<EndpointPeer>, NameHash> members;
    EndpointPeer* last = nullptr;  ///< the session of the last datagram that arrived
    List<Session, &Session::active_hook> active;
    uint64_t earliest = UINT64_MAX;  ///< time (ns) before which no session's timer expires
    uint64_t rails_at = 0;           ///< time (ns) of the next check for changes of rails
    uint64_t last_epoch = 0;
    uint64_t now = 0;  ///< time (ns) of the current or the last poll
    int batches = 0;
    bool polling = false;
    int arrived = 0, taken = 0;  ///< number of datagrams of the last receive(), and of those handled so far
    bool room_made = false;
    std::vector<EndpointPeer*> dirty;    ///< sessions that will send when the batch ends
    std::vector<EndpointPeer*> touched;  ///< sessions with datagrams in this poll
    std::vector<Held> held;              ///< datagrams whose senders link does not know yet
    EndpointCounters totals;             ///< counters of datagrams; `counters` has those of sessions
};

}  // namespace starling::network
