// Interface between the library and the plugin (src/plugins/verbs) that drives one InfiniBand or RoCE port. The plugin uses libibverbs and
// librdmacm and is loaded only where there is a device (transport/verbs/ports.h); libmpi links neither of the two. The library and the
// plugin may have different C++ runtimes. Therefore no exceptions and no standard-library types cross this interface, and objects are ended
// by close() and never deleted here.
//
// A port has one datagram queue (UD), which reaches every process with constant memory, and connection queues (RC), one for each process
// that has earned one. All of them share one completion queue and one stock of receive buffers. Sends copy their data (or inline it), so
// the caller's memory is free when the call returns. Only write(), read() and the updates use registered memory.
//
// Not thread-safe: all calls under the library's lock. Numbers are in host byte order unless said otherwise.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>

namespace starling::verbs {

/// Address of a datagram queue (UD). It is sent to other processes in this layout.
struct VerbsAddress {
    uint8_t gid[16] = {};  ///< network byte order
    uint32_t queue = 0;    ///< queue number (QPN); 0: none
    uint32_t key = 0;      ///< the Q_Key that datagrams to the queue must carry
    uint16_t lid = 0;      ///< port's LID, 0 on RoCE
    uint8_t mtu_log = 0;   ///< log2 of the MTU in bytes
    uint8_t flags = 0;
    uint32_t reserved = 0;
    bool operator==(const VerbsAddress&) const = default;
};
static_assert(sizeof(VerbsAddress) == 32);

/// Address of a connection's queue (RC). 28 bytes, so that it fits into an offer (transport::Connector::kOffer) with four bytes to spare.
struct QueueAddress {
    uint8_t gid[16] = {};
    uint32_t queue = 0;
    uint32_t first = 0;  ///< initial packet sequence number (PSN), 24 bits
    uint16_t lid = 0;
    uint8_t mtu_log = 0;
    uint8_t reads = 0;  ///< number of reads and atomics that the queue serves concurrently
};
static_assert(sizeof(QueueAddress) == 28);

/// Description of one port of a device, whether used or not.
struct PortFacts {
    char device[64] = {};     ///< name of the device, for example mlx5_0, rxe0
    char interface[16] = {};  ///< name of the network device; RoCE only
    char why_not[160] = {};   ///< reason why the port can't be used, with a remedy; empty: usable
    uint8_t port = 0;         ///< number of the port, counted from 1
    uint8_t gid_index = 0;    ///< index of the chosen GID; RoCE v2 with an IPv4 address is preferred
    bool ethernet = false;    ///< whether the port is RoCE, not InfiniBand
    bool active = false;      ///< whether the link is up
    uint16_t lid = 0;
    uint16_t pkey = 0xffff;
    uint8_t gid[16] = {};
    uint32_t mtu = 0;           ///< active MTU, bytes
    uint32_t inline_bytes = 0;  ///< longest send that needs no buffer (max inline), bytes
    uint32_t most_queues = 0;
    uint64_t most_registered = 0;  ///< limit of one registration, bytes
};

/// Memory that is registered with the device.
struct Memory {
    uint32_t local = 0, remote = 0;  ///< lkey and rkey of the memory
    void* handle = nullptr;          ///< registration, owned by the plugin
};

enum class WorkStatus : uint8_t {
    done,
    busy,       ///< nothing was sent, the queue is full; a `room` event follows
    broken,     ///< the queue is in the error state or closed, and sends nothing any more
    too_long,   ///< the message is too long; nothing was sent
    no_memory,  ///< memory of the device, or locked memory (RLIMIT_MEMLOCK), is used up; problem() explains it
};

/// An event that poll() returns. `data` is aligned to 8.
struct VerbsEvent {
    enum class VerbsEventKind : uint8_t {
        datagram,  ///< received datagram: data, bytes, gid, source_queue (the sender's). Return the buffer by return_buffer()
        frame,     ///< frame received on an RC queue: data, bytes, user (the queue's). Return the buffer by return_buffer()
        note,      ///< write with immediate received: `word`, user (the queue's)
        done,      ///< a write, read or atomic completed: `token`, status done or broken
        room,      ///< a send that was refused as busy may be retried; `user` is the queue's, null: datagram queue
        broken,    ///< an RC queue entered the error state, see problem(); reported once per queue, with its `user`
        down,      ///< the port lost its link, GID or device; nothing is sent until it is up again
        up,        ///< the port works again, perhaps with another address(); broken queues stay broken
    };
    VerbsEventKind kind = VerbsEventKind::datagram;
    WorkStatus status = WorkStatus::done;
    uint32_t bytes = 0;
    std::byte* data = nullptr;
    void* user = nullptr;
    uint64_t token = 0;
    uint32_t word = 0;
    uint32_t source_queue = 0;
    uint8_t gid[16] = {};
    void* buffer = nullptr;  ///< buffer owned by the plugin, for return_buffer()
};

/// One end of a connection (RC queue pair). Created in the RESET state; connect() moves it to ready-to-receive and ready-to-send.
class Queue {
  public:
    virtual QueueAddress address() const = 0;
    /// Connects the queue to the peer's. Returns false if the device refuses; problem() has the reason.
    virtual bool connect(const QueueAddress& peer) = 0;
    /// Sends a frame of at most Port::frame_limit() bytes in at most 16 parts. It arrives whole and in order, or the queue breaks.
    virtual WorkStatus send(const iovec* parts, int count) = 0;

    // An RDMA operation: the device moves the memory without the peer's help. Several may be in flight. Each one that is not `quiet` ends
    // with a `done` event.
    struct Transfer {
        uint64_t token = 0;
        void* memory = nullptr;  ///< local memory of the operation
        uint32_t local = 0;      ///< lkey; not needed for a write of at most PortFacts::inline_bytes
        uint32_t bytes = 0;
        uint64_t address = 0;  ///< address in the peer's memory
        uint32_t remote = 0;   ///< rkey
        bool quiet = false;    ///< unsignaled: no event unless the operation fails; a later `done` of this queue covers it
        bool more = false;     ///< whether another call follows at once, so that one doorbell can serve both
    };
    virtual WorkStatus write(const Transfer& what) = 0;
    /// RDMA write with immediate: the peer gets a `note` event when all data is there. It consumes one of the peer's receive buffers.
    virtual WorkStatus write_with_note(const Transfer& what, uint32_t word) = 0;
    virtual WorkStatus read(const Transfer& what) = 0;
    /// Issues an atomic on 8 aligned bytes of the peer; the previous value is stored in `memory`.
    virtual WorkStatus fetch_add(const Transfer& what, uint64_t operand) = 0;
    virtual WorkStatus compare_swap(const Transfer& what, uint64_t compare, uint64_t operand) = 0;

    /// Closes the queue. Transfers in flight end with status broken, and afterwards no event names this queue. The peer is not notified.
    /// With `linger`, frames that send() accepted are still sent, and the queue is destroyed once they have arrived or failed.
    virtual void close(bool linger) = 0;

  protected:
    ~Queue() = default;
};

/// This process's membership in a multicast group on the port.
class PortMembership {
  public:
    enum class MembershipState : uint8_t { joining, ready, failed };
    virtual MembershipState state() = 0;
    /// Sends to all other members; the datagram may also come back to this process. `busy` as in Port::send.
    virtual WorkStatus send(const iovec* parts, int count) = 0;
    virtual void leave() = 0;

  protected:
    ~PortMembership() = default;
};

struct PortCounters {
    uint64_t registered_bytes = 0;  ///< bytes of all registered memory
    uint64_t queue_bytes = 0;       ///< bytes of registered memory that are receive and send buffers
    uint64_t queues = 0;            ///< number of RC queues that are open now
    uint64_t datagrams_sent = 0, datagrams_received = 0, frames_sent = 0, frames_received = 0;
    uint64_t transfers = 0;     ///< number of writes, reads and atomics
    uint64_t queue_memory = 0;  ///< bytes of the work and completion queues, here and (estimated) in the device
    /// Number of remote ports that received datagrams; the device stores some 200 bytes for each.
    uint64_t address_handles = 0;
};

class Port {
  public:
    virtual const PortFacts& facts() const = 0;
    /// Returns the address of the datagram queue. It changes only with an `up` event.
    virtual VerbsAddress address() const = 0;
    /// Returns the longest datagram in bytes, sent or received.
    virtual uint32_t datagram_limit() const = 0;
    virtual uint32_t frame_limit() const = 0;

    virtual WorkStatus send(const VerbsAddress& to, const iovec* parts, int count) = 0;
    /// Creates an RC queue. Returns null if there are no more queues or no memory; problem() has the reason.
    virtual Queue* make_queue(void* user) = 0;
    virtual PortMembership* join(const uint8_t* group_gid) = 0;

    /// Registers memory for writes, reads and atomics; `remote` also allows peers to access it. Returns false on failure, see problem().
    virtual bool enroll(void* memory, uint64_t bytes, bool remote, Memory& out) = 0;
    virtual void dismiss(Memory& memory) = 0;

    /// Returns at most `most` events. Makes few system calls, and none if nothing has happened.
    virtual int poll(VerbsEvent* events, int most) = 0;
    /// Returns an event's buffer to the receive stock. Buffers may be returned in any order, but soon, since they receive the next packets.
    virtual void return_buffer(const VerbsEvent& event) = 0;

    /// Returns the descriptor that becomes readable after arm() when poll() would find something. Repeated calls of arm() have no further
    /// effect. arm() returns false if there is an event already.
    virtual int wait_fd() const = 0;
    virtual bool arm() = 0;

    virtual PortCounters counters() const = 0;
    /// Describes the last failure in a sentence, with a remedy where there is one.
    virtual const char* problem() const = 0;
    virtual void close() = 0;

  protected:
    ~Port() = default;
};

/// Settings of the library and mpiexec (base/variables.def) for open().
struct DeviceOptions {
    uint32_t receive_buffers = 0;  ///< number of receive buffers; in all fields, 0 means the plugin's default
    uint32_t send_buffers = 0;
    uint32_t frame_bytes = 0;
    int gid_index = -1;
    int service_level = 0;
    int pkey_index = 0;
    int traffic_class = 0;
};

/// The structure that the plugin exports under the name kPluginSymbol.
struct Plugin {
    uint32_t version;
    /// Lists at most `most` ports of all devices, used or not, and returns their number. Opens and closes each device.
    int (*list)(PortFacts* out, int most, const DeviceOptions* options);
    /// Opens the port that `which` (from list()) names. Returns null on failure, with a sentence in `problem`.
    Port* (*open)(const PortFacts* which, const DeviceOptions* options, char* problem, size_t problem_size);
};

inline constexpr uint32_t kPluginVersion = 2;
inline constexpr const char* kPluginSymbol = "starling_verbs_plugin";
inline constexpr const char* kPluginFile = "libstarling_verbs.so";

}  // namespace starling::verbs
