// The UDP port of a process: sends and receives datagrams in batches, and reports the kernel's errors. One socket serves all peers. A few
// peers may have a lane, which is a socket on the same port connected to the peer. The kernel then needs no lookup of route and neighbor, a
// fifth of the cost of a small datagram on both hosts.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "transport/network/session/carrier.h"
#include "transport/network/session/path.h"

namespace starling::network {

/// The destination of a datagram, and the interface to use.
struct Destination {
    sockaddr_in to;
    uint32_t interface;  ///< kernel's number of our interface; 0: the kernel's routing decides
    uint32_t from;       ///< our address on the interface, network byte order
    int lane;            ///< lane that is connected to the destination; kNoLane: the socket for all peers
    static constexpr int kNoLane = -1;

    bool same_place(const Destination& other) const {
        return to.sin_addr.s_addr == other.to.sin_addr.s_addr && to.sin_port == other.to.sin_port &&
               interface == other.interface && from == other.from;
    }
};

/// A datagram that has arrived; valid until the next receive().
struct ReceivedDatagram {
    std::byte* data;  ///< contents of the datagram, aligned to 64 bytes
    uint32_t bytes;
    uint32_t address;    ///< address of the sender, network byte order
    uint16_t port;       ///< port of the sender, host byte order
    uint32_t interface;  ///< kernel's number of the interface on which the datagram arrived; 0: unknown
    /// Whether a verbs port received the datagram: `address` is the sender's queue number, `interface` our port's index.
    bool by_verbs = false;
    bool opened = false;  ///< whether the datagram was sealed and has been decrypted
    bool is_new = false;  ///< whether the sender has replaced another process, or has lost its state about us
};

/// Requests large buffers for a datagram socket: with CAP_NET_ADMIN the full size, otherwise as much as the kernel allows.
void set_buffer_sizes(int fd);

/// The UDP sockets of a process. Not thread-safe.
class Udp {
  public:
    static constexpr int kBatch = 32;         ///< most datagrams held until flush()
    static constexpr int kReceiveBatch = 16;  ///< most datagrams in one receive()
    static constexpr int kMostParts = Carrier::kMost;
    static constexpr size_t kMostFront = 256;  ///< most bytes of a datagram's first part
    /// Datagrams up to this size, in bytes, are copied into one block before they are sent.
    static constexpr size_t kCopied = 1024;
    static constexpr int kLanes = 4;  ///< most lanes; each costs a descriptor, and a system call in some polls
    /// Most sockets for further addresses of this host. They are used if the socket for all peers is bound to one address.
    static constexpr int kDoors = 15;
    static constexpr int kSockets = 1 + kLanes + kDoors;

    Udp();
    Udp(const Udp&) = delete;
    Udp& operator=(const Udp&) = delete;
    ~Udp();

    /// Binds the socket for all peers to an address of this host (network byte order; 0: all) and a port that the kernel chooses. Returns
    /// MPI_ERR_OTHER with failure_text() on failure.
    int open(uint32_t address = 0);
    /// Opens a socket for another address of this host, if necessary in place of one whose address is not in `kept`. Sets the socket's
    /// `bit` and descriptor. Returns false if there is a socket for the address already, or none can be opened.
    bool open_door(uint32_t address, std::span<const uint32_t> kept, int epoll, uint32_t& bit, int& fd);
    int fd() const { return sockets_[0].fd; }
    uint16_t port() const { return port_; }

    /// Sets whether arrivals report their interface and destinations may name one, which is useful with several interfaces.
    void enable_interface_info(bool wanted);

    /// Connects lane `lane` (< kLanes) with a destination, opening the lane's socket if necessary. Datagrams that arrive on a lane are read
    /// from any sender, so a lane may change to another peer. Returns the lane's descriptor, -1 if it cannot be connected.
    int point_lane(int lane, const Destination& where);

    /// The callback for a datagram that the kernel did not take, with the `token` and `number` given to queue(), and the reason.
    using Refused = void (*)(void* token, uint32_t number, SendResult why);
    void on_refused(Refused refused) { refused_ = refused; }

    /// Queues a datagram, which is sent at flush() or when kBatch are queued. The first part is copied; the other parts must stay valid
    /// until the datagram is sent.
    void queue(const Destination& where, void* token, uint32_t number, const iovec* parts, int count);
    void flush() {
        if (queued_ > 0) flush_queued();
    }

    /// Returns the bit of a lane's socket in the set for expect().
    static uint32_t bit_of(int lane) { return 1u << (lane + 1); }
    /// Sets the sockets that are known to be readable: they are read before any other.
    void expect(uint32_t sockets) { expected_ = sockets; }
    bool expects() const { return expected_ != 0; }
    /// Reads at most kReceiveBatch datagrams from one of the sockets, usually from the one that last received something. Writes them to
    /// arrivals() and returns their number.
    int receive();
    ReceivedDatagram* arrivals() { return arrivals_; }

    uint64_t busy_count() const { return busy_; }
    uint64_t truncated_count() const { return truncated_; }

  private:
    struct UdpSendBatch;
    struct UdpReceiveBatch;
    struct Socket {
        int fd = -1;
        uint32_t address = 0;  ///< local address of the socket; 0: any
        int wanted = 1;        ///< number of datagrams to request at the next receive()
        bool filled = false;   ///< whether the last receive() returned as many datagrams as requested
    };
    int socket_of(const Destination& where) const { return sockets_[where.lane + 1].fd; }
    Socket& next_to_read();
    int receive(Socket& socket);
    void flush_queued();
    int send_run(int first, int count);
    int run_of_equals(int first) const;
    void describe(int first, int run, msghdr& message, iovec* parts, void* control);
    int send_small(UdpSendBatch& out);
    bool receive_one(int fd);
    void refuse(int first, int count, int error);
    static void adapt(Socket& socket, int received);

    static constexpr int kFirstDoor = 1 + kLanes;
    int open_count() const { return socket_count_ + door_count_; }
    Socket& open_socket(int i) { return sockets_[i < socket_count_ ? i : kFirstDoor + i - socket_count_]; }

    Socket sockets_[kSockets];  ///< socket for all peers, then the lanes, then those for further addresses
    int socket_count_ = 0, door_count_ = 0;
    int productive_ = 0;  ///< index of the socket that last received something
    uint32_t turn_ = 0;
    uint32_t expected_ = 0;
    uint16_t port_ = 0;
    bool interfaces_ = false;
    bool segmentation_ = false;  ///< whether the kernel splits runs of datagrams (UDP_SEGMENT)
    int queued_ = 0;
    std::unique_ptr<UdpSendBatch[]> out_;
    std::unique_ptr<UdpReceiveBatch> in_;
    ReceivedDatagram arrivals_[kReceiveBatch];
    Refused refused_ = nullptr;
    uint64_t busy_ = 0, truncated_ = 0;
};

}  // namespace starling::network
