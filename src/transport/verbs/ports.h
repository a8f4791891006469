// The ports of this host's InfiniBand and RoCE devices that this process uses: chosen, opened, looked at, and followed as they come and go.
//
// Not thread-safe: all calls under the library's lock. Times are those of base/clock.h (ns).
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "transport/verbs/choice.h"
#include "transport/verbs/device.h"

namespace starling::verbs {

/// Whoever has connections' queues (RC) of the ports, and memory that they may use. Told from inside Ports::poll() and refresh().
class QueueListener {
  public:
    /// Kinds frame, note, done, broken, room (of a queue), down and up. What came in a buffer is valid during the call.
    virtual void happened(uint16_t place, Port& port, const Event& event) = 0;
    /// The port is closed after the call: close its queues and dismiss its memory now.
    virtual void closing(uint16_t place, Port& port) = 0;

  protected:
    ~QueueListener() = default;
};

/// A datagram that came, until it is given back.
struct Came {
    uint16_t place;
    Event event;
};

class Ports {
  public:
    static constexpr uint16_t kMost = 4;  ///< used at a time
    static constexpr int kBatch = 16;     ///< events of a port in one poll

    /// Opens what is to be used, as the variables say. Null if that is nothing; an MPI error class with failure_text() where a port is
    /// required, or a variable is wrong. Where there is no device that costs an opendir().
    static int open(std::unique_ptr<Ports>& out);
    /// The same of this plugin, whatever the kernel knows.
    static int open(const Plugin& plugin, std::unique_ptr<Ports>& out);
    Ports(const Ports&) = delete;
    Ports& operator=(const Ports&) = delete;
    ~Ports();

    /// Of a place. A port keeps its place for as long as it is open, and takes it again if it comes again, unless all were needed. Null:
    /// none is open there.
    Port* port(uint16_t place) const { return places_[place].port; }
    /// It is open and its link up.
    bool usable(uint16_t place) const { return places_[place].usable; }
    /// Of those that are usable.
    uint16_t count() const {
        uint16_t n = 0;
        for (const Place& place : places_) n = static_cast<uint16_t>(n + place.usable);
        return n;
    }
    /// Changes whenever a port becomes usable or ceases to be, or its address does.
    uint32_t version() const { return version_; }
    /// By one, who is there for as long as the ports are.
    void listen(QueueListener& listener) { listener_ = &listener; }
    /// The listener has closed the queue whose user that was: nothing that has come for it is told any more.
    void forget(const void* user);

    /// Has the ports' descriptors watched, those to come as well: an event has `data`.
    void watch(int epoll, uint64_t data);
    /// Looks at all ports. Gives how many datagrams have come, in came(); they have to be given back before the next call. If the listener
    /// throws (std::bad_alloc), the next call goes on with the same event.
    int poll();
    const Came& came(int i) const { return came_[i]; }
    void give_back(const Came& one) { places_[one.place].port->give_back(one.event); }
    /// A datagram queue that was busy has room; forgets it.
    bool take_room();
    /// Something of which peers are the cause has come since the last call.
    bool take_brought() { return std::exchange(brought_, false); }
    /// From now on the descriptors tell of what comes. False: something has come.
    bool arm();
    /// Looks for devices that have come or gone; not between poll() and give_back(). `thoroughly`: also where the kernel has told nothing.
    void refresh(uint64_t now, bool thoroughly = false);

    /// Of all that are open.
    PortCounters counters() const;
    /// Why a port is not used, of those that were looked at last: "mlx5_0:1: sentence; …". Empty: all are.
    const char* why_not() const { return why_not_; }

  private:
    struct Place {
        Port* port = nullptr;
        char device[64] = {};  ///< whose place it is; empty: nobody's yet
        uint8_t number = 0;
        bool usable = false;
        uint64_t down_at = 0;  ///< ns, since when it is not
    };

    Ports(const Plugin& plugin, bool kernels) : plugin_(plugin), kernels_(kernels) {}
    static int open(const Plugin& plugin, bool kernels, std::unique_ptr<Ports>& out);
    void take_up();
    Place* place_for(const PortFacts& facts);
    bool open_port(Place& place, const PortFacts& facts);
    void close(Place& place);
    void take(uint16_t index, const Event& event);
    void tell_listener(uint16_t index, const Event& event);
    void change(Place& place, bool usable);
    void note_unused(const PortFacts& facts, const char* why);
    void watch(Place& place);

    const Plugin& plugin_;
    const bool kernels_;  ///< what the kernel says of devices is true for these
    DeviceChoice choice_;
    Place places_[kMost];
    uint32_t version_ = 1;
    QueueListener* listener_ = nullptr;
    bool room_ = false;
    bool brought_ = false;
    int epoll_ = -1;
    uint64_t epoll_data_ = 0;
    uint64_t seen_ = 0;        ///< devices_seen()
    uint64_t refresh_at_ = 0;  ///< ns
    Came came_[kMost * kBatch];
    int came_count_ = 0;
    uint16_t at_ = 0;       ///< the place that is looked at
    Event events_[kBatch];  ///< of its port
    int event_ = 0, events_count_ = 0;
    char why_not_[512] = {};
};

}  // namespace starling::verbs
