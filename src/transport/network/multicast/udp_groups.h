// IP multicast: one UDP socket per rail for all groups of this process, on a port shared by all processes. The kernel announces one
// membership per host and address to the network, however many processes have joined. Ports of InfiniBand and RoCE devices join the same
// addresses, and senders prefer them as rails. Their group datagrams arrive together with their other datagrams, and are recognized by the
// group's key.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "transport/multicast_groups.h"
#include "transport/network/crypto/group_encryption.h"
#include "transport/network/datagram/rails.h"
#include "transport/transport.h"
#include "transport/verbs/ports.h"

namespace starling::network {

/// The addresses used for groups: a part of 239.0.0.0/8.
struct GroupRange {
    uint32_t first = 0;  ///< lowest address, host byte order
    uint32_t bits = 0;   ///< number of low bits of the address that vary within the range
    /// Parses an address range. Returns MPI_ERR_ARG with failure_text() if the text is not one.
    static int parse(const char* text, GroupRange& out);
    /// Returns the address that `place` selects from the range, in network byte order.
    uint32_t address(uint64_t place) const;
};

class GroupSockets;

/// This process's membership in a group on the network.
class GroupMember final : public transport::MulticastMembership {
  public:
    GroupMember(GroupSockets& by, const transport::GroupName& name, uint32_t address, GroupEncryption& seal,
                transport::DatagramHandler& audience);
    ~GroupMember() override;

    bool send(const iovec* parts, int count) override;
    void flush() override;
    void report_unreachable() override;

  private:
    friend class GroupSockets;
    size_t seal(std::byte* to, const iovec* parts, int count) const;

    GroupSockets& by_;
    const transport::GroupName name_;
    const uint32_t address_;  ///< IPv4 address of the group, network byte order
    GroupEncryption& seal_;
    transport::DatagramHandler& audience_;
    uint32_t tries_;  ///< number that selects the rail for sending, modulo the usable rails
};

class GroupSockets {
  public:
    /// Longest payload of a datagram, which fits Ethernet's MTU between the key and the seal. For an interface with a smaller MTU the
    /// kernel fragments the datagram.
    static constexpr uint32_t kPayload = 1500 - 28 - 8 - kSealBytes;

    /// Creates the sockets' owner without any socket. `epoll` is the epoll set that will watch the sockets, with `bit` as data. `ports` may
    /// be null and must outlive this object.
    GroupSockets(int epoll, uint32_t bit, verbs::Ports* ports);
    GroupSockets(const GroupSockets&) = delete;
    GroupSockets& operator=(const GroupSockets&) = delete;
    ~GroupSockets();

    /// Finds the rails and opens their sockets. Returns MPI_ERR_OTHER with failure_text() on failure.
    int open();
    int join(const transport::GroupName& name, transport::DatagramHandler& audience,
             std::unique_ptr<transport::MulticastMembership>& out);
    /// Receives datagrams and passes them to the members. Returns whether there were any.
    bool poll(uint64_t now);
    /// Handles a datagram that a port has received. Returns false if it is not for a group of this process.
    bool handle_from_port(const std::byte* data, size_t bytes);
    /// Ends the memberships of a port that is about to be closed.
    void closing(uint16_t place);

  private:
    friend class GroupMember;
    static constexpr int kBatch = 8;  ///< datagrams received per system call
    /// Bytes of the buffer for one datagram, or for a run that the kernel has merged.
    static constexpr size_t kRoom = 64 * 1024;
    /// Maximum number of encryption states. When it is reached, the states of groups without a member are freed.
    static constexpr size_t kMostSeals = 1024;
    static constexpr size_t kDatagram = 1500 - 28;
    static constexpr size_t kMostRun = 32;  ///< most datagrams that one system call sends
    struct GroupReceiveBatch;
    /// Datagrams of equal length (the last may be shorter) that one call will send.
    struct DatagramRun {
        GroupMember* to = nullptr;
        size_t count = 0, piece = 0, bytes = 0;
        bool ended = false;
        std::byte data[kMostRun * kDatagram];
    };

    /// An address that one or more groups of this process use.
    struct JoinedAddress {
        uint32_t users = 0;
        verbs::PortMembership* by_port[verbs::Ports::kMost] = {};
    };

    int open_socket(uint16_t rail);
    void close_socket(uint16_t rail);
    int enter(uint16_t rail, uint32_t address);
    void leave(GroupMember& member);
    void follow_rails(uint64_t now);
    bool send(GroupMember& member, const iovec* parts, int count);
    void flush();
    bool send_to(const GroupMember& member, std::byte* data, size_t bytes, size_t piece);
    int socket_for(const GroupMember& member) const;
    bool receive(int fd);

    // Functions of ud_groups.cpp.
    void enter_ports(uint32_t address, JoinedAddress& by);
    static void leave_ports(JoinedAddress& by);
    void follow_ports();
    verbs::PortMembership* ready(const JoinedAddress& by, uint16_t place) const;
    uint32_t ready_ports(const GroupMember& member) const;
    verbs::PortMembership* port_for(const GroupMember& member) const;
    verbs::WorkStatus send_by_port(const GroupMember& member, verbs::PortMembership& port, const iovec* parts, int count);
    void handle(std::byte* data, size_t bytes);
    GroupEncryption& seal_for(const transport::GroupName& name);

    const int epoll_;
    const uint32_t bit_;
    GroupRange range_;
    Rails rails_;
    int sockets_[Rails::kMost];
    uint32_t interfaces_[Rails::kMost] = {};  ///< interface of each socket; a rail's index may be reused for another interface
    uint64_t rails_at_ = 0;
    std::unique_ptr<Cipher> cipher_;
    /// Encryption states by group key, also of groups left.
    std::unordered_map<uint64_t, std::unique_ptr<GroupEncryption>> seals_;
    std::unordered_map<uint64_t, GroupMember*> members_;  ///< current members by group key
    std::unordered_map<uint32_t, JoinedAddress> addresses_;
    verbs::Ports* const ports_;
    uint32_t ports_seen_ = 0;  ///< version of the ports at the last check
    uint32_t tries_ = 0;       ///< `tries_` of the member that last switched its rail; new members start with it
    std::unique_ptr<GroupReceiveBatch> in_;
    std::unique_ptr<DatagramRun> run_;
    bool segmentation_ = true;  ///< whether the kernel can segment runs (UDP_SEGMENT)
};

}  // namespace starling::network
