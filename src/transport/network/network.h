// Transport `ip`: connects this process to processes on other hosts of the universe. Each path has a session (session.h), which stores what
// is sent until the peer has acknowledged it. The session's frames travel as datagrams (endpoint.h), or over the connection that the path
// has earned. That connection is an RC queue pair where both processes have InfiniBand or RoCE (transport/network/rdma/rc_connection.h),
// else TCP (tcp.h). Streams travel over connections only.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "transport/batch.h"
#include "transport/connector.h"
#include "transport/failure_detection.h"
#include "transport/multicast_groups.h"
#include "transport/network/datagram/endpoint.h"
#include "transport/network/multicast/udp_groups.h"
#include "transport/network/rdma/rc_connection.h"
#include "transport/network/tcp/tcp.h"
#include "transport/remote_memory.h"
#include "transport/transport.h"
#include "transport/verbs/ports.h"
#include "transport/wait_source.h"

namespace starling::network {

inline constexpr transport::Traits kTraits{
    .name = "ip",
    .reaches = "processes on other hosts: UDP, and TCP where it is earned",
    .capabilities = transport::kConnections | transport::kStreams | transport::kRails | transport::kGroups,
    .latency_ns = 20'000,
    .payload = 16 * 1024,
};

/// Bytes of a message that fits in one datagram with an Ethernet MTU.
inline constexpr uint64_t kOneDatagram = 1400;

class Network;

/// The connection of one path. It exists from acquire_slot() to release_slot().
struct PathConnection {
    Connection* connection = nullptr;  ///< RC or TCP connection; null until one of the two is chosen
    bool rc = false;
    bool opened_once = false;
    bool attached = false;  ///< whether the session sends its frames over this connection
    bool carries = false;   ///< whether the connection has opened, and finish() was not called yet
    // Events that the connection reported within a callback; act_on_news() handles them later. `queued`: the path is in told_.
    bool opened = false, ended = false, broken = false, paused = false, trusted = false, queued = false;
};

/// The path to a process on another host.
class NetworkPath final : public transport::Path {
  public:
    NetworkPath(Network& by, const transport::ProcessAddress& to, void* user);

    uint32_t payload_limit() const override { return kTraits.payload; }
    bool reserve(uint32_t bytes, transport::PacketSlot& slot) override;
    void commit(transport::PacketSlot& slot, uint32_t bytes) override;
    bool idle() const override;
    void close() override;
    uint32_t fragment_limit() const override;
    void handle(const transport::Packet& packet) override;

  private:
    friend class Network;
    RcConnection* rc() const { return wire_ && wire_->rc ? static_cast<RcConnection*>(wire_->connection) : nullptr; }
    Network& network() const;
    verbs::Port* port(uint8_t& place) const;
    bool uses_wire() const { return wire_ && wire_->attached && !wire_->connection->paused(); }
    void attach_wire();
    void detach_wire();
    void report(const char* what) const;

    Session* session_ = nullptr;            ///< session with the peer; null after close()
    uint16_t port_ = 0;                     ///< UDP port that the session sends to; 0: not known yet
    std::unique_ptr<PathConnection> wire_;  ///< connection; null unless the path has a slot for one
    uint32_t foreseen_ = 0;                 ///< number of messages that a plan expects; 0: the path is not in the plan
    uint64_t rc_from_ = 0;      ///< time (ns) before which RC is not tried again, after an attempt failed or a connection broke
    uint64_t rc_pause_ = 0;     ///< pause (ns) between RC attempts, doubled each time
    uint64_t better_from_ = 0;  ///< time (ns) before which TCP is not replaced by RC
    uint64_t better_pause_ = 0;  ///< pause (ns) between replacements of TCP by RC
};

class Network final : public transport::Transport,
                      public transport::Connector,
                      public transport::StreamCarrier,
                      public transport::RemoteMemory,
                      public transport::NotifiedWrites,
                      public transport::MulticastGroups,
                      public transport::FailureDetection,
                      public transport::WaitSource,
                      public transport::Batching,
                      private verbs::QueueListener {
  public:
    /// Opens a UDP socket and publishes its port in this process's word of the address table. Takes constant time and sends nothing. The
    /// Network lives until the process ends.
    static int open(const transport::ProcessAddress& self, transport::Sink& sink, Network*& out);

    bool reaches(const transport::ProcessAddress& process) const override { return !process.segment->is_local(process.rank); }
    int attach(const transport::ProcessAddress& to, void* user, transport::Path*& out) override;
    void detach(transport::Path& path) override;
    void forget(job::JobId job) override { endpoint_->forget(job); }
    void announce(job::PortWord state) override;
    bool poll(PollUrgency look) override;
    uint64_t next_deadline() const override;
    transport::Connector* connector() override { return this; }
    transport::StreamCarrier* streams() override { return this; }
    transport::RemoteMemory* remote_memory() override { return this; }
    transport::NotifiedWrites* notified_writes() override { return this; }
    transport::MulticastGroups* groups() override { return this; }
    transport::FailureDetection* failure_detection() override { return this; }
    transport::WaitSource* wait_source() override { return this; }
    transport::Batching* batching() override { return this; }

    uint64_t silent_since(const transport::Path& path) const override;
    void confirm_alive(transport::Path& path, bool looks) override;

    bool carry(transport::Path& path, OutStream& stream) override;
    void end(OutStream& stream, bool confirmed) override;

    int wait_fd() const override { return endpoint_->wait_fd(); }
    void woken() override { woken_ = true; }
    bool arm() override;
    void disarm() override { --asleep_; }

    void begin_batch() override { endpoint_->begin_batch(); }
    void end_batch() override { endpoint_->end_batch(); }
    void flush() override { endpoint_->flush_acks(); }
    void request_acks() override { endpoint_->request_acks(); }

    void* register_memory(transport::Path& to, const void* memory, uint64_t bytes, bool stays,
                          transport::RemoteKey& key) override;
    void deregister(void* registration, bool at_once) override {
        rc_->deregister(*static_cast<RegisteredMemory*>(registration), at_once);
    }
    bool can_register(const transport::Path& to) const override;
    bool can_access(const transport::Path& of, const transport::RemoteKey& key) const override;
    bool post(transport::Path& from, void* memory, uint64_t bytes, uint32_t word, transport::RdmaTarget& target,
              transport::RemoteKey& key) override;
    void cancel(transport::RdmaTarget& target, bool at_once) override {
        if (target.place) rc_->cancel_rdma_target(target, at_once);
    }
    int write(transport::Path& to, const transport::RemoteKey& region, const void* from, uint64_t bytes, uint32_t word,
              transport::WriteNotice told, transport::Completion& done) override;
    int put(transport::Path& to, const transport::RemoteKey& region, uint64_t offset, const void* from, uint64_t bytes,
            transport::Completion& done) override;
    int get(transport::Path& of, const transport::RemoteKey& region, uint64_t offset, void* into, uint64_t bytes,
            transport::Completion& done) override;

    int join(const transport::GroupName& name, transport::DatagramHandler& audience,
             std::unique_ptr<transport::MulticastMembership>& out) override;
    uint32_t payload() const override;

    bool earned(uint32_t packets, uint64_t bytes) const override;
    bool speeds_up(uint64_t messages, uint64_t bytes) const override;
    bool has_place() override;
    void acquire_slot(transport::Path& path) override;
    uint32_t describe(transport::Path& path, packet::PacketKind kind, std::byte* offer) override;
    bool is_offer(const std::byte*) const override { return true; }  // not checked, since Connections::use() does it
    void use(transport::Path& path, packet::PacketKind kind, const std::byte* offer) override;
    void finish(transport::Path& path) override;
    void release_slot(transport::Path& path) override;
    void failed_there(transport::Path& path) override;
    void set_expected_traffic(transport::Path& path, uint32_t messages) override;
    void each_user(void (*visit)(void* user, void* argument), void* argument) override;

  private:
    friend class NetworkPath;
    /// How recently one source of packets (connections, datagrams or groups) delivered something, and whether to poll it now.
    struct Bringer {
        uint64_t last = 0;    ///< time (ns) of the source's last packet
        uint32_t passed = 0;  ///< number of consecutive polls that skipped the source

        bool busy(uint64_t now) const;
        bool due(uint64_t now, const Bringer& other, uint64_t deadline);
        bool check_due(uint64_t now, bool any);
    };

    Network(const transport::ProcessAddress& self, transport::Sink& sink) : Transport(kTraits), self_(self), sink_(sink) {}
    EndpointUpcalls upcalls();
    Session* create_session(job::JobId job, uint32_t rank, uint64_t key);
    void lose(NetworkPath& path);
    bool place(NetworkPath& path);
    bool place_paths();
    void note_held_back();
    void adopt(std::unique_ptr<verbs::Ports> ports);
    void find_devices(uint64_t now);
    bool check_devices(PollUrgency look);
    bool poll_descriptors(PollUrgency look, uint64_t now);
    bool poll_ready(uint64_t now);

    // Functions of network_connections.cpp.
    ConnectionUpcalls wire_upcalls();
    bool ensure_tcp();
    bool connect_by(NetworkPath& path, bool rc);
    void drop_connection(NetworkPath& path);
    void avoid_rc(NetworkPath& path);
    void failed_to(NetworkPath& path, const char* what);
    void note(NetworkPath& path, bool PathConnection::*what);
    bool has_verbs() const;
    bool settle_wires(uint64_t now);
    void find_better_path(uint64_t now);
    bool poll_datagrams(uint64_t now);
    bool poll_rings(uint64_t now);
    void happened(uint16_t place, verbs::Port& port, const verbs::VerbsEvent& event) override;
    void closing(uint16_t place, verbs::Port& port) override;
    void follow_rails();
    void report_lost_rails(const uint32_t* now, size_t count);
    void follow_pause(NetworkPath& path);
    void act_on_news();
    void count_fragments();
    bool poll_wires(uint64_t now);
    uint64_t wires_deadline() const;

    const transport::ProcessAddress self_;
    transport::Sink& sink_;
    Endpoint* endpoint_ = nullptr;
    std::vector<NetworkPath*> unplaced_;  ///< paths to processes whose port is not known yet
    uint32_t skipped_ = 0, skip_quiet_ = 1;
    uint32_t held_back_ = 0;     ///< number of packets committed since the last poll that could not be sent at once
    uint64_t held_back_at_ = 0;  ///< time (ns) of the first packet counted in held_back_
    bool must_poll_ = false;     ///< whether reserve() must refuse until the next poll
    bool woken_ = false;
    int asleep_ = 0;  ///< number of threads that sleep on wait_fd()
    Bringer by_wire_, by_datagram_, by_group_;
    std::unique_ptr<GroupSockets> groups_;  ///< multicast groups; null until the first join()

    std::unique_ptr<Tcp> tcp_;         ///< all TCP connections; null until the first one
    std::unique_ptr<Rc> rc_;           ///< all RC connections; null until the first one
    bool had_rc_event_ = false;        ///< whether this poll has handled an event of a verbs port
    std::vector<NetworkPath*> wired_;  ///< paths that have a PathConnection
    std::vector<NetworkPath*> told_;   ///< paths in wired_ with unhandled events
    std::vector<uint32_t> rails_;      ///< this host's addresses, as of follow_rails()
    uint32_t rails_seen_ = 0;          ///< rails_version() at the last follow_rails()
    uint64_t last_traffic_ = 0;
    uint64_t devices_at_ = UINT64_MAX;  ///< time (ns) of the next check for a verbs device; UINT64_MAX: never
    uint64_t better_at_ = 0;            ///< time (ns) of the next check whether RC can replace TCP
    StreamTotals counted_by_tcp_, counted_by_rc_;
};

}  // namespace starling::network
