// InfiniBand and RoCE in the simulated world: an implementation of transport/verbs/device.h. A device has one port, on one rail of its
// host. Datagrams, frames of connections and RDMA accesses travel over the simulated network, with its faults. Devices add faults: queues
// that break before or after their work was executed, exhausted receive buffers, removal and insertion, refused requests, and ports that
// reach only their own network.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "network.h"
#include "transport/verbs/device.h"

namespace starling::simulation {

/// The devices at the start, and their behavior.
struct DeviceWeather {
    std::vector<bool> fitted;  ///< whether a device is there, by host and rail; empty: no devices at all
    uint32_t mtu = 4096, frame = 4096;
    uint32_t receives = 256;  ///< number of receive buffers of a port
    uint32_t sends = 64;      ///< largest number of datagrams in transmission at a time
    uint32_t places = 64;     ///< largest number of work requests in a connection's queue
    uint32_t inline_bytes = 192;
    double breaks = 0;    ///< chance that a connection's queue breaks, at each work request and again at its acknowledgement
    double refuses = 0;   ///< chance that a request for a queue or registration fails
    bool mixes = false;   ///< completions of different queues are reported in any order
    bool routed = false;  ///< ports on different rails reach each other
};

class SimulatedPort;
class SimulatedQueue;

/// All devices of all hosts.
class Devices {
  public:
    Devices(World& world, const DeviceWeather& weather);
    ~Devices();

    const DeviceWeather& weather() const { return weather_; }
    World& world() const { return world_; }
    bool is_there(uint32_t host, uint32_t rail) const { return there_[index(host, rail)] != 0; }
    /// Returns a number that changes with every insertion of the device; 0: not inserted.
    uint64_t identity(uint32_t host, uint32_t rail) const { return there_[index(host, rail)]; }
    void set_there(uint32_t host, uint32_t rail, bool there);
    /// Reports that the network's rail went down or came up.
    void link_changed(uint32_t host, uint32_t rail, bool up);
    /// Returns whether the network between these two ports works now.
    bool carries(const SimulatedPort& from, const SimulatedPort& to) const;

    /// Memory that devices may access, by its key.
    struct Registered {
        SimulatedPort* by;
        uint64_t begin, bytes;
        bool holds(uint64_t at, uint64_t count) const { return at >= begin && count <= bytes && at - begin <= bytes - count; }
    };
    uint32_t draw_number() { return next_number_++; }

    std::vector<SimulatedPort*> ports;
    std::vector<verbs::PortCounters> most;  ///< maxima of each closed port: queues, bytes
    std::unordered_map<uint32_t, SimulatedPort*> by_datagram_queue;
    std::unordered_map<uint32_t, SimulatedQueue*> queues;
    std::unordered_map<uint32_t, Registered> memory;

  private:
    size_t index(uint32_t host, uint32_t rail) const { return size_t{host} * network()->rails() + rail; }

    World& world_;
    const DeviceWeather weather_;
    std::vector<uint64_t> there_;
    uint64_t next_identity_ = 1;
    uint32_t next_number_ = 2;  ///< next number of a queue or key; lower numbers are the devices' own
};

/// Returns the devices of the simulated world; null if no world is simulated.
Devices* devices();

/// Makes this the verbs plugin of all libraries that are loaded later. Call it once per program.
void become_plugin(const char* file);

/// Opens the kernel's file with this name that describes devices; returns a descriptor, or -1 with errno. Call it only for names that
/// is_about_devices() accepts.
bool is_about_devices(const char* path);
int open_device_file(const char* path);

}  // namespace starling::simulation
