// The simulated network: hosts with rails; datagrams that are lost, duplicated or late; byte streams that stall and break.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "adapters.h"
#include "descriptors.h"

namespace starling::simulation {

/// How the network treats datagrams and streams.
struct Weather {
    double loss = 0, twice = 0, late = 0;
    uint64_t latency_ns = 20'000;  ///< least latency of a datagram; a random amount up to this value is added
    uint64_t late_ns = 2'000'000;  ///< largest extra delay of delayed datagrams
    double breaks = 0;             ///< chance that a byte stream breaks, at each write
    uint32_t queue = 512;          ///< receive queue of a socket, in datagrams
    uint32_t buffer = 256 << 10;   ///< bytes of a stream that are in transit or unread
    uint32_t mtu = 1500;
    bool cuts_runs = true;  ///< UDP_SEGMENT
};

struct UdpSocket;

/// The ways of data between hosts; each has its latency in worlds that predict times.
enum class Path : uint8_t { udp, tcp, ud, rc };

class Network {
  public:
    Network(World& world, uint32_t hosts, uint32_t rails, const Weather& weather);
    ~Network();

    uint32_t hosts() const { return hosts_; }
    uint32_t rails() const { return rails_; }
    const Weather& weather() const { return weather_; }

    /// Returns the address of a host's rail in network byte order.
    uint32_t address(uint32_t host, uint32_t rail) const;
    static uint32_t netmask();
    /// Returns the host's rail with this address or on its network; rails() if there is none.
    uint32_t rail_towards(uint32_t address) const;
    static uint32_t host_of(uint32_t address);
    bool is_up(uint32_t host, uint32_t rail) const { return up_[host * rails_ + rail]; }
    /// Takes the interface down or up; the host notices it.
    void set_up(uint32_t host, uint32_t rail, bool up);
    /// Makes a rail lose everything without any host noticing.
    void set_silent(uint32_t host, uint32_t rail, bool silent) { silent_[host * rails_ + rail] = silent; }
    bool works(uint32_t host, uint32_t rail) const { return up_[host * rails_ + rail] && !silent_[host * rails_ + rail]; }
    bool carries(uint32_t from, uint32_t to, uint32_t rail) const;

    uint16_t free_port() { return next_port_++; }
    /// Sends a datagram; returns 0 or errno.
    int send(Process& from, uint32_t rail, const Address& source, const Address& target, std::string_view bytes);
    /// Sends one copy (or none, or two) of a datagram from one host's rail to another's; each copy that arrives
    /// runs its own copy of `arrive`. Returns when the sender's adapter has sent it, in worlds that predict times. `sending` is a datagram
    /// to several hosts that has begun.
    uint64_t carry(Path path, uint32_t from, uint32_t from_rail, uint32_t to, uint32_t to_rail, uint64_t bytes,
                   std::function<void()> arrive, Adapters::Sending* sending = nullptr);
    /// Begins a datagram to several hosts: its sender's adapter sends it once. Pass the result to carry() for each host. Worlds of random
    /// seeds have no adapters, so the result is empty there.
    std::optional<Adapters::Sending> begin_for_many(Path path, uint32_t from, uint64_t bytes);
    /// Returns the transit time of a transmission without data. Runs of seeds draw it.
    uint64_t latency(Path path);
    /// Returns the transit time of `bytes`, including the time that they wait for earlier data.
    uint64_t transit(Path path, uint32_t from, uint32_t to, uint64_t bytes) {
        return transfer(path, from, to, bytes, nullptr).arrives - world_.now;
    }
    Adapters& adapters() { return adapters_; }

    /// Returns the sockets bound to the port on this host.
    std::vector<UdpSocket*>& bound(uint32_t host, uint16_t port) { return bound_[host << 16 | port]; }

    uint64_t sent = 0, lost = 0, doubled = 0, delayed = 0;

  private:
    Adapters::Transfer transfer(Path path, uint32_t from, uint32_t to, uint64_t bytes, Adapters::Sending* sending);
    bool has_member(uint32_t host, uint32_t rail, const Address& group);
    void deliver(uint32_t host, uint32_t rail, const Address& source, const Address& target, std::string bytes);

    World& world_;
    const uint32_t hosts_, rails_;
    const Weather weather_;
    Adapters adapters_;
    std::vector<bool> up_, silent_;
    uint16_t next_port_ = 20000;
    std::unordered_map<uint32_t, std::vector<UdpSocket*>> bound_;
};

/// Returns whether this is the address of a multicast group.
bool is_group(uint32_t address);

/// Returns the network of the simulated world.
Network* network();

struct Datagram {
    Address from;
    uint32_t to;  ///< receiver's IPv4 address, network byte order
    uint32_t rail;
    std::string bytes;
};

struct UdpSocket final : Descriptor {
    Address bound;  ///< own address; address 0: any
    Address peer;   ///< address of the connected peer; port 0: not connected
    bool tells_interface = false;
    uint32_t group_rail = 0;                            ///< outgoing rail for multicast datagrams
    struct JoinedGroup {
        uint32_t address, rail;
        uint64_t since;  ///< when the switches carry the group's datagrams to this host
    };
    std::vector<JoinedGroup> groups;
    std::deque<Datagram> queue;
    uint64_t opening = 0;  ///< price of opening the datagrams to groups that were received since the last call, ns

    bool has_joined(uint32_t group, uint32_t rail) const;
    /// Returns whether datagrams to the group arrive here now.
    bool hears(uint32_t group, uint32_t rail) const;

    using Descriptor::Descriptor;
    ~UdpSocket() override;
    /// Binds the socket; port 0 selects a free port.
    void bind(const Address& to);
    uint32_t events() const override { return (queue.empty() ? 0u : EPOLLIN) | EPOLLOUT; }
    /// Sends a datagram; returns 0 or errno. network()->rails() as `rail` selects no rail.
    int send(const Address& target, uint32_t rail, uint32_t source, std::string_view bytes);
};

}  // namespace starling::simulation
