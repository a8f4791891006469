// The UDP port of a process: datagrams out in batches, datagrams in, and what the kernel says about them. One socket
// serves all peers; a few peers may have a lane, a socket of their own on the same port that is connected to them: the
// kernel then looks for neither route nor neighbour, which is a fifth of what a small datagram costs both hosts.
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

/// Where a datagram goes, and by which interface.
struct Destination {
    sockaddr_in to;
    uint32_t interface;  ///< 0: as the kernel routes
    uint32_t from;       ///< our address on it, network byte order
    int lane;            ///< that is connected to there; kNoLane: by the socket for all
    static constexpr int kNoLane = -1;

    bool same_place(const Destination& other) const {
        return to.sin_addr.s_addr == other.to.sin_addr.s_addr && to.sin_port == other.to.sin_port &&
               interface == other.interface && from == other.from;
    }
};

/// A datagram that came; valid until the next receive().
struct ReceivedDatagram {
    std::byte* data;  ///< aligned to 64
    uint32_t bytes;
    uint32_t address;       ///< of the sender, network byte order
    uint16_t port;          ///< of the sender, host byte order
    uint32_t interface;     ///< it came by; 0: not known
    bool by_verbs = false;  ///< then `address` is the number of the sender's queue, and `interface` the place of our port
    bool opened = false;    ///< it was sealed, and is not any more,
    bool is_new = false;    ///< by a process in the place of another, or that has forgotten us
};

/// Not thread-safe.
class Udp {
  public:
    static constexpr int kBatch = 32;         ///< datagrams kept until flush(), at most
    static constexpr int kReceiveBatch = 16;  ///< datagrams in one receive(), at most
    static constexpr int kMostParts = Carrier::kMost;
    static constexpr size_t kMostFront = 256;  ///< bytes of a datagram's first part
    static constexpr size_t kCopied = 1024;    ///< datagrams up to this size are put together before they are sent
    static constexpr int kLanes = 4;           ///< each costs a descriptor, and a look into it now and then
    static constexpr int kDoors = 15;  ///< besides the socket for all: addresses at which datagrams are taken, if not at all
    static constexpr int kSockets = 1 + kLanes + kDoors;

    Udp();
    Udp(const Udp&) = delete;
    Udp& operator=(const Udp&) = delete;
    ~Udp();

    /// Binds to an address of this host (network byte order; 0: to all) and a port that the kernel chooses. MPI_ERR_OTHER with failure_text().
    int open(uint32_t address = 0);
    /// Takes what comes to another address, too; if need be in the place of one that is not among the `kept`. Gives the socket's bit and
    /// descriptor; false: it does already, or there is no socket to be had.
    bool open_door(uint32_t address, std::span<const uint32_t> kept, int epoll, uint32_t& bit, int& fd);
    int fd() const { return sockets_[0].fd; }
    uint16_t port() const { return port_; }

    /// Whether arrivals say by which interface they came, and destinations may name one: where there are several.
    void tell_interfaces(bool wanted);

    /// Connects lane `lane` (< kLanes) with a place, opening it if it is not. What comes for it is read whoever sent it, so
    /// a lane may change hands. Gives its descriptor, -1 if none is to be had.
    int point_lane(int lane, const Destination& where);

    /// Told of datagrams that the kernel did not take: `token` as given to queue(), and why.
    using Refused = void (*)(void* context, void* token, uint32_t number, Sent why);
    void on_refused(Refused refused, void* context) {
        refused_ = refused;
        context_ = context;
    }

    /// Takes a datagram; sends it with the others at flush(), or when there are many. The first part is copied, the
    /// others must stay until then.
    void queue(const Destination& where, void* token, uint32_t number, const iovec* parts, int count);
    void flush() {
        if (queued_ > 0) flush_queued();
    }

    /// The bit of a socket, for expect().
    static uint32_t bit_of(int lane) { return 1u << (lane + 1); }
    /// These have something: they are read before any other.
    void expect(uint32_t sockets) { expected_ = sockets; }
    bool expects() const { return expected_ != 0; }
    /// Reads what has come on one of the sockets, mostly that which brought something last; at most kReceiveBatch. Gives
    /// how many and writes them to arrivals().
    int receive();
    ReceivedDatagram* arrivals() { return arrivals_; }

    uint64_t busy_count() const { return busy_; }
    uint64_t truncated_count() const { return truncated_; }

  private:
    struct Outgoing;
    struct Incoming;
    struct Socket {
        int fd = -1;
        uint32_t address = 0;  ///< that it is bound to
        int wanted = 1;        ///< datagrams asked for at the next receive()
        bool filled = false;   ///< the last receive() brought as many as were wanted
    };
    int socket_of(const Destination& where) const { return sockets_[where.lane + 1].fd; }
    Socket& next_to_read();
    int receive(Socket& socket);
    void flush_queued();
    int send_run(int first, int count);
    int run_of_equals(int first) const;
    void describe(int first, int run, msghdr& message, iovec* parts, void* control);
    int send_small(Outgoing& out);
    bool receive_one(int fd);
    void refuse(int first, int count, int error);
    static void adapt(Socket& socket, int received);

    static constexpr int kFirstDoor = 1 + kLanes;
    int open_count() const { return socket_count_ + door_count_; }
    Socket& open_socket(int i) { return sockets_[i < socket_count_ ? i : kFirstDoor + i - socket_count_]; }

    Socket sockets_[kSockets];  ///< the one for all, then the lanes, then the doors
    int socket_count_ = 0, door_count_ = 0;
    int productive_ = 0;  ///< that brought something last
    uint32_t turn_ = 0;
    uint32_t expected_ = 0;
    uint16_t port_ = 0;
    bool interfaces_ = false;
    bool segmentation_ = false;  ///< the kernel cuts runs of datagrams itself (UDP_SEGMENT)
    int queued_ = 0;
    std::unique_ptr<Outgoing[]> out_;
    std::unique_ptr<Incoming> in_;
    ReceivedDatagram arrivals_[kReceiveBatch];
    Refused refused_ = nullptr;
    void* context_ = nullptr;
    uint64_t busy_ = 0, truncated_ = 0;
};

}  // namespace starling::network
