// Multicast on IP: one UDP socket per rail for all groups of this process, on a port that all processes use. The kernel tells the network of
// one membership per host and address, however many processes have it. Ports of InfiniBand and RoCE devices join the same addresses, and are
// rails before the others to who sends: what they bring comes with what else they bring, and is told from it by the group's key.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "transport/network/crypto/group_encryption.h"
#include "transport/network/datagram/rails.h"
#include "transport/transport.h"
#include "transport/verbs/ports.h"

namespace starling::network {

/// The addresses that groups are given: part of 239.0.0.0/8.
struct GroupRange {
    uint32_t first = 0;  ///< host byte order
    uint32_t bits = 0;   ///< of an address that may be anything
    /// MPI_ERR_ARG with failure_text() if it can't be that.
    static int parse(const char* text, GroupRange& out);
    /// Network byte order.
    uint32_t address(uint64_t place) const;
};

class GroupSockets;

/// This process's membership in a group.
class GroupMember final : public transport::Group {
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
    const uint32_t address_;  ///< network byte order
    GroupEncryption& seal_;
    transport::DatagramHandler& audience_;
    uint32_t tries_;  ///< which of the usable rails it sends by
};

class GroupSockets {
  public:
    /// Of a datagram on Ethernet, between the key and the seal. Where an interface takes less the kernel cuts it.
    static constexpr uint32_t kPayload = 1500 - 28 - 8 - kSealBytes;

    /// `epoll`: where the sockets are watched, as `bit`. `ports`: null, or there for longer.
    GroupSockets(int epoll, uint32_t bit, verbs::Ports* ports);
    GroupSockets(const GroupSockets&) = delete;
    GroupSockets& operator=(const GroupSockets&) = delete;
    ~GroupSockets();

    /// Looks for the rails. MPI_ERR_OTHER with failure_text().
    int open();
    int join(const transport::GroupName& name, transport::DatagramHandler& audience, std::unique_ptr<transport::Group>& out);
    /// Takes what has come. Whether anything did.
    bool poll(uint64_t now);
    /// A datagram that a port has brought; false: it is none of a group of ours.
    bool take_from_port(const std::byte* data, size_t bytes);
    /// The port is closed after the call.
    void closing(uint16_t place);

  private:
    friend class GroupMember;
    static constexpr int kBatch = 8;            ///< receives at a time
    static constexpr size_t kRoom = 64 * 1024;  ///< of a datagram, or a run of them
    static constexpr size_t kMostSeals = 1024;  ///< of groups, before those that were left are forgotten
    static constexpr size_t kDatagram = 1500 - 28;
    static constexpr size_t kMostRun = 32;  ///< datagrams that the kernel is given at a time
    struct Incoming;
    /// Datagrams of equal length that wait to be sent, but for the last, which may be shorter.
    struct Run {
        GroupMember* to = nullptr;
        size_t count = 0, piece = 0, bytes = 0;
        bool ended = false;
        std::byte data[kMostRun * kDatagram];
    };

    /// One that groups of ours have, perhaps several.
    struct Address {
        uint32_t users = 0;
        verbs::Membership* by_port[verbs::Ports::kMost] = {};
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

    // ud_groups.cpp
    void enter_ports(uint32_t address, Address& by);
    static void leave_ports(Address& by);
    void follow_ports();
    verbs::Membership* ready(const Address& by, uint16_t place) const;
    uint32_t ready_ports(const GroupMember& member) const;
    verbs::Membership* port_for(const GroupMember& member) const;
    verbs::Status send_by_port(const GroupMember& member, verbs::Membership& port, const iovec* parts, int count);
    void take(std::byte* data, size_t bytes);
    GroupEncryption& seal_for(const transport::GroupName& name);

    const int epoll_;
    const uint32_t bit_;
    GroupRange range_;
    Rails rails_;
    int sockets_[Rails::kMost];
    uint32_t interfaces_[Rails::kMost] = {};  ///< that they send by: a rail's place may have become another's
    uint64_t rails_at_ = 0;
    std::unique_ptr<Cipher> cipher_;
    std::unordered_map<uint64_t, std::unique_ptr<GroupEncryption>> seals_;  ///< by key; of groups that were left, too
    std::unordered_map<uint64_t, GroupMember*> members_;                    ///< by key
    std::unordered_map<uint32_t, Address> addresses_;
    verbs::Ports* const ports_;
    uint32_t ports_seen_ = 0;  ///< their version, as of the last look
    uint32_t tries_ = 0;       ///< of the member that has changed its rail last: new ones begin there
    std::unique_ptr<Incoming> in_;
    std::unique_ptr<Run> run_;
    bool segmentation_ = true;  ///< the kernel cuts runs (UDP_SEGMENT)
};

}  // namespace starling::network
