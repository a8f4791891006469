// InfiniBand and RoCE in the simulated world: an implementation of transport/verbs/device.h. A device has one port, on one of its host's
// rails; datagrams, what connections carry, and what devices read and write in the memory of others take the simulated network, with
// its faults and their own: queues that break, before or after what they carried was there, receive buffers that are all full, devices that are pulled
// out and put in again, that refuse, or that reach only those on their own network.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "network.h"
#include "transport/verbs/device.h"

namespace starling::simulation {

/// What devices there are at the beginning, and how they behave.
struct DeviceWeather {
    std::vector<bool> fitted;  ///< by host and rail; empty: no host has any
    uint32_t mtu = 4096, frame = 4096;
    uint32_t receives = 256;  ///< buffers of a port
    uint32_t sends = 64;      ///< datagrams that it sends at a time
    uint32_t places = 64;     ///< of a connection's queue
    uint32_t inline_bytes = 192;
    double breaks = 0;    ///< of a connection's queue, with each thing it does, and again when that is acknowledged
    double refuses = 0;   ///< of each queue and registration that is asked for
    bool mixes = false;   ///< what happens to different queues is told in any order
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
    /// Another whenever it was put in anew; 0: it is not there.
    uint64_t identity(uint32_t host, uint32_t rail) const { return there_[index(host, rail)]; }
    void set_there(uint32_t host, uint32_t rail, bool there);
    /// The network's rail has gone down or come up.
    void link_changed(uint32_t host, uint32_t rail, bool up);
    /// Nothing stands between these two ports now.
    bool carries(const SimulatedPort& from, const SimulatedPort& to) const;

    /// Memory that devices may use, by its key.
    struct Registered {
        SimulatedPort* by;
        uint64_t begin, bytes;
        bool holds(uint64_t at, uint64_t count) const { return at >= begin && count <= bytes && at - begin <= bytes - count; }
    };
    uint32_t draw_number() { return next_number_++; }

    std::vector<SimulatedPort*> ports;
    std::vector<verbs::PortCounters> most;  ///< of each that is closed: queues and bytes at a time
    std::unordered_map<uint32_t, SimulatedPort*> by_datagram_queue;
    std::unordered_map<uint32_t, SimulatedQueue*> queues;
    std::unordered_map<uint32_t, Registered> memory;

  private:
    size_t index(uint32_t host, uint32_t rail) const { return size_t{host} * network()->rails() + rail; }

    World& world_;
    const DeviceWeather weather_;
    std::vector<uint64_t> there_;
    uint64_t next_identity_ = 1;
    uint32_t next_number_ = 2;  ///< of queues, keys and ports, all alike; a device's own queues are those before
};

/// Null: no world.
Devices* devices();

/// Gives the libraries that are loaded from now on this as their plugin. Once in a program.
void become_plugin(const char* file);

/// The file of the kernel's about devices that has this name: a descriptor, or -1 with errno. Not asked of others (is_about_devices).
bool is_about_devices(const char* path);
int open_device_file(const char* path);

}  // namespace starling::simulation
