// An InfiniBand or RoCE port, as the library sees it. The plugin (src/plugins/verbs) makes it of libibverbs and librdmacm, and is loaded only
// where there is a device (transport/verbs/ports.h); libmpi links neither of them. Each side has a C++ library of its own, so what
// crosses is plain: no exceptions, nothing of the standard library, objects ended by close() and never deleted here.
//
// A port has one datagram queue (UD), which reaches every process at once with constant memory, and queues of connections (RC), one
// to a process that has earned it; all share one completion queue and one stock of receive buffers. What is sent is copied, or inline,
// so the caller's memory is free when the call returns; only write(), read() and the updates use memory that was registered.
//
// Not thread-safe: all calls under the library's lock. Numbers in host byte order unless said otherwise.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>

namespace starling::verbs {

/// How a datagram queue is reached; what others are told, as it is.
struct Address {
    uint8_t gid[16] = {};  ///< network byte order
    uint32_t queue = 0;    ///< its number; 0: none
    uint32_t key = 0;      ///< the Q_Key that datagrams to it show
    uint16_t lid = 0;      ///< 0 on RoCE
    uint8_t mtu_log = 0;   ///< bytes of a packet, as a power of two
    uint8_t flags = 0;
    uint32_t reserved = 0;
    bool operator==(const Address&) const = default;
};
static_assert(sizeof(Address) == 32);

/// How a connection's queue is reached. 28 bytes, so it fits an offer (transport::Connector::kOffer) with a word to spare.
struct QueueAddress {
    uint8_t gid[16] = {};
    uint32_t queue = 0;
    uint32_t first = 0;  ///< the sequence number (PSN) that it begins with, 24 bits
    uint16_t lid = 0;
    uint8_t mtu_log = 0;
    uint8_t reads = 0;  ///< reads and updates that it serves at a time
};
static_assert(sizeof(QueueAddress) == 28);

/// A port of a device, used or not.
struct PortFacts {
    char device[64] = {};     ///< mlx5_0, rxe0
    char interface[16] = {};  ///< RoCE: of the network device
    char why_not[160] = {};   ///< it can't be used: a sentence with a remedy. Empty: it can
    uint8_t port = 0;         ///< from 1
    uint8_t gid_index = 0;    ///< that was chosen: RoCE v2 with an IPv4 address before others
    bool ethernet = false;    ///< RoCE, not InfiniBand
    bool active = false;      ///< the link is up
    uint16_t lid = 0;
    uint16_t pkey = 0xffff;
    uint8_t gid[16] = {};
    uint32_t mtu = 0;           ///< bytes, of the port as it is
    uint32_t inline_bytes = 0;  ///< that a send takes without a buffer
    uint32_t most_queues = 0;
    uint64_t most_registered = 0;  ///< bytes of one registration
};

/// Memory that the device may use.
struct Memory {
    uint32_t local = 0, remote = 0;  ///< lkey; rkey, which others show
    void* handle = nullptr;          ///< the plugin's
};

enum class Status : uint8_t {
    done,
    busy,       ///< nothing was taken: no place in the queue now; an event `room` follows when there is
    broken,     ///< the queue is in error or closed: nothing goes by it any more
    too_long,   ///< nothing was taken
    no_memory,  ///< of the device's, or more than may be locked (RLIMIT_MEMLOCK): problem() has a sentence
};

/// What poll() tells. `data` is aligned to 8.
struct Event {
    enum class Kind : uint8_t {
        datagram,  ///< has come: data, bytes, gid and source_queue of the sender. Give it back
        frame,     ///< has come by a connection's queue: data, bytes; `user` is the queue's. Give it back
        note,      ///< a write with a word has come: `word`; `user` is the queue's
        done,      ///< a write, read or update: `token`; status done or broken
        room,      ///< who was told busy may try again; `user` is the queue's, null: the datagram queue
        broken,    ///< a connection's queue went into error: problem() has a sentence. Once per queue; `user` is the queue's
        down,      ///< the port: its link, its GID or the device is gone. Nothing goes; it may come up again
        up,        ///< the port again, perhaps with another address(); queues that broke stay broken
    };
    Kind kind = Kind::datagram;
    Status status = Status::done;
    uint32_t bytes = 0;
    std::byte* data = nullptr;
    void* user = nullptr;
    uint64_t token = 0;
    uint32_t word = 0;
    uint32_t source_queue = 0;
    uint8_t gid[16] = {};
    void* buffer = nullptr;  ///< the plugin's; for give_back()
};

/// One end of a connection (RC). Made in state "reset"; connect() makes it ready to receive and send.
class Queue {
  public:
    virtual QueueAddress address() const = 0;
    /// False with problem(): the device refuses.
    virtual bool connect(const QueueAddress& peer) = 0;
    /// Sends a frame, at most Port::frame_limit() bytes in at most 16 parts; it arrives whole and in order, or the queue breaks.
    virtual Status send(const iovec* parts, int count) = 0;

    // The device moves memory, without the other process. Several may be under way; each that is not `quiet` ends with an event `done`.
    struct Transfer {
        uint64_t token = 0;
        void* memory = nullptr;  ///< of this process
        uint32_t local = 0;      ///< its Memory::local; a write of at most PortFacts::inline_bytes needs none
        uint32_t bytes = 0;
        uint64_t address = 0;  ///< of theirs
        uint32_t remote = 0;   ///< its Memory::remote
        bool quiet = false;    ///< no event, unless it fails; what comes later in this queue and is told tells for it, too
        bool more = false;     ///< another call follows at once: the device need not be told yet
    };
    virtual Status write(const Transfer& what) = 0;
    /// The other side gets an event `note` when all of it is there; so it needs a receive buffer.
    virtual Status write_with_note(const Transfer& what, uint32_t word) = 0;
    virtual Status read(const Transfer& what) = 0;
    /// Of 8 bytes, aligned; what was there before goes to `memory`.
    virtual Status fetch_add(const Transfer& what, uint64_t operand) = 0;
    virtual Status compare_swap(const Transfer& what, uint64_t compare, uint64_t operand) = 0;

    /// Transfers under way end with status broken, and after that no event names this queue. The other side is told nothing. `linger`: what
    /// send() took still goes out, and the queue ends by itself once that has arrived, or can't.
    virtual void close(bool linger) = 0;

  protected:
    ~Queue() = default;
};

/// This process's membership in a multicast group of the port.
class Membership {
  public:
    enum class State : uint8_t { joining, ready, failed };
    virtual State state() = 0;
    /// To all other members; our own comes back as well, perhaps. `busy` as of Port::send.
    virtual Status send(const iovec* parts, int count) = 0;
    virtual void leave() = 0;

  protected:
    ~Membership() = default;
};

struct PortCounters {
    uint64_t registered_bytes = 0;  ///< memory that the device may use, all of it
    uint64_t queue_bytes = 0;       ///< of these, receive and send buffers
    uint64_t queues = 0;            ///< of connections, open now
    uint64_t datagrams_sent = 0, datagrams_received = 0, frames_sent = 0, frames_received = 0;
    uint64_t transfers = 0;  ///< writes, reads and updates
    uint64_t queue_memory =
        0;  ///< bytes of the places of queues and completions, here and, as they are laid out usually, in the device
    uint64_t address_handles = 0;  ///< remote ports that datagrams went to, of which the device keeps some 200 bytes each
};

class Port {
  public:
    virtual const PortFacts& facts() const = 0;
    /// Of the datagram queue; it changes with an event `up` alone.
    virtual Address address() const = 0;
    /// The longest datagram, bytes; also of what comes.
    virtual uint32_t datagram_limit() const = 0;
    virtual uint32_t frame_limit() const = 0;

    virtual Status send(const Address& to, const iovec* parts, int count) = 0;
    /// Null with problem(): no more queues, or no memory.
    virtual Queue* make_queue(void* user) = 0;
    virtual Membership* join(const uint8_t* group_gid) = 0;

    /// For write, read and updates. remote: others may do so, too. False with problem().
    virtual bool enroll(void* memory, uint64_t bytes, bool remote, Memory& out) = 0;
    virtual void dismiss(Memory& memory) = 0;

    /// What has happened, at most `most` events; few calls of the system, none where nothing has.
    virtual int poll(Event* events, int most) = 0;
    /// Of events with a buffer, in any order, soon: it is where the next one arrives.
    virtual void give_back(const Event& event) = 0;

    /// Readable when poll() would find something, after arm(). Several calls of arm() are as one; false: there is something already.
    virtual int wait_fd() const = 0;
    virtual bool arm() = 0;

    virtual PortCounters counters() const = 0;
    /// A sentence about the last thing that failed, with a remedy where there is one.
    virtual const char* problem() const = 0;
    virtual void close() = 0;

  protected:
    ~Port() = default;
};

/// What the library and mpiexec set (base/variables.def), for open().
struct Options {
    uint32_t receive_buffers = 0;  ///< 0: as the plugin thinks best; all of these are
    uint32_t send_buffers = 0;
    uint32_t frame_bytes = 0;
    int gid_index = -1;
    int service_level = 0;
    int pkey_index = 0;
    int traffic_class = 0;
};

/// What the plugin exports, as kPluginSymbol.
struct Plugin {
    uint32_t version;
    /// Every port of every device, at most `most`, used or not; gives how many there are. Opens and closes each device.
    int (*list)(PortFacts* out, int most, const Options* options);
    /// By device and port of list(). Null, with a sentence in `problem`.
    Port* (*open)(const PortFacts* which, const Options* options, char* problem, size_t problem_size);
};

inline constexpr uint32_t kPluginVersion = 2;
inline constexpr const char* kPluginSymbol = "starling_verbs_plugin";
inline constexpr const char* kPluginFile = "libstarling_verbs.so";

}  // namespace starling::verbs
