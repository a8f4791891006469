// The InfiniBand and RoCE ports of this host that this process uses: selects, opens and polls them, and follows them as devices appear and
// disappear.
//
// Not thread-safe: all calls under the library's lock. Times are those of base/clock.h (ns).
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "transport/verbs/choice.h"
#include "transport/verbs/device.h"

namespace starling::verbs {

/// The owner of the ports' RC queues and registered memory. Its functions are called from inside Ports::poll() and refresh().
class QueueListener {
  public:
    /// Handles events of the kinds frame, note, done, broken, room (of a queue), down and up. A receive buffer is valid only during the
    /// call.
    virtual void happened(uint16_t place, Port& port, const VerbsEvent& event) = 0;
    /// Closes the queues and deregisters the memory of a port, which will be closed next.
    virtual void closing(uint16_t place, Port& port) = 0;

  protected:
    ~QueueListener() = default;
};

/// A received datagram, valid until return_buffer().
struct Came {
    uint16_t place;
    VerbsEvent event;
};

class Ports {
  public:
    static constexpr uint16_t kMost = 4;  ///< most ports used at a time
    static constexpr int kBatch = 16;     ///< most events of a port in one poll

    /// Opens the ports that the variables select. `out` is null if there are none. Returns an MPI error class with failure_text() if a port
    /// is required and none can be used, or if a variable is wrong. Costs one opendir() on a host without a device.
    static int open(std::unique_ptr<Ports>& out);
    /// Opens the ports that this plugin lists, whatever devices the kernel lists.
    static int open(const Plugin& plugin, std::unique_ptr<Ports>& out);
    Ports(const Ports&) = delete;
    Ports& operator=(const Ports&) = delete;
    ~Ports();

    /// Returns the port at this index, or null. A port keeps its index while it is open. When it reappears it gets the same index, unless
    /// all indices were needed meanwhile.
    Port* port(uint16_t place) const { return places_[place].port; }
    /// Returns whether the port is open and its link is up.
    bool usable(uint16_t place) const { return places_[place].usable; }
    /// Returns how many ports are usable.
    uint16_t count() const {
        uint16_t n = 0;
        for (const PortSlot& place : places_) n = static_cast<uint16_t>(n + place.usable);
        return n;
    }
    /// Returns a number that changes whenever a port becomes usable or unusable, or changes its address.
    uint32_t version() const { return version_; }
    /// Sets the only listener, which must outlive the ports.
    void listen(QueueListener& listener) { listener_ = &listener; }
    /// Drops events already polled for the queue with this user, which the listener has closed.
    void forget(const void* user);

    /// Adds the descriptors of all ports, also of later ones, to the epoll set, with `data` in their events.
    void watch(int epoll, uint64_t data);
    /// Polls all ports. Returns how many datagrams datagram() holds; return each by return_buffer() before the next call. If the listener throws
    /// (std::bad_alloc), the next call continues with the same event.
    int poll();
    const Came& datagram(int i) const { return datagrams_[i]; }
    void return_buffer(const Came& one) { places_[one.place].port->return_buffer(one.event); }
    /// Returns whether a datagram queue that was busy has room again, and resets this flag.
    bool fetch_room();
    /// Returns whether an event caused by a peer has arrived since the last call.
    bool fetch_peer_event() { return std::exchange(brought_, false); }
    /// Arms the descriptors for new events. Returns false if there is an event already.
    bool arm();
    /// Opens and closes ports as devices appear and disappear; not between poll() and return_buffer(). `thoroughly`: even if the kernel's list
    /// of devices has not changed.
    void refresh(uint64_t now, bool thoroughly = false);

    /// Returns the sum over all open ports.
    PortCounters counters() const;
    /// Returns why ports are not used, as of the last check: "mlx5_0:1: sentence; …". Empty: all are used.
    const char* why_not() const { return why_not_; }

  private:
    struct PortSlot {
        Port* port = nullptr;
        char device[64] = {};  ///< name of the device for which this index is reserved; empty: none yet
        uint8_t number = 0;
        bool usable = false;
        uint64_t down_at = 0;  ///< time (ns) since which the port has been unusable
    };

    Ports(const Plugin& plugin, bool kernels) : plugin_(plugin), kernels_(kernels) {}
    static int open(const Plugin& plugin, bool kernels, std::unique_ptr<Ports>& out);
    void open_new();
    PortSlot* place_for(const PortFacts& facts);
    bool open_port(PortSlot& place, const PortFacts& facts);
    void close(PortSlot& place);
    void handle(uint16_t index, const VerbsEvent& event);
    void notify_listener(uint16_t index, const VerbsEvent& event);
    void change(PortSlot& place, bool usable);
    void note_unused(const PortFacts& facts, const char* why);
    void watch(PortSlot& place);

    const Plugin& plugin_;
    const bool kernels_;  ///< whether the ports are real devices, to which the kernel's state applies
    DeviceChoice choice_;
    PortSlot places_[kMost];
    uint32_t version_ = 1;
    QueueListener* listener_ = nullptr;
    bool room_ = false;
    bool brought_ = false;
    int epoll_ = -1;
    uint64_t epoll_data_ = 0;
    uint64_t seen_ = 0;        ///< result of devices_seen() at the last refresh()
    uint64_t refresh_at_ = 0;  ///< earliest time (ns) of the next refresh()
    Came datagrams_[kMost * kBatch];
    int datagram_count_ = 0;
    uint16_t at_ = 0;            ///< index of the port being polled
    VerbsEvent events_[kBatch];  ///< events of the port being polled
    int event_ = 0, events_count_ = 0;
    char why_not_[512] = {};
};

}  // namespace starling::verbs
