// The rails of transport ip: the interfaces of this host that messages may use, as they come and go.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "job/interface_filter.h"

namespace starling::network {

using job::InterfaceFilter;

struct Rail {
    char name[16] = {};
    uint32_t index = 0;    ///< of the interface, as the kernel counts
    uint32_t address = 0;  ///< IPv4, network byte order
    uint32_t netmask = 0;
    uint32_t mtu = 0;     ///< bytes of an IP packet
    bool usable = false;  ///< up and connected; false: it was there once
    bool loopback = false;
    uint64_t bytes_sent = 0, bytes_received = 0;

    bool is(const Rail& other) const { return address == other.address && std::strcmp(name, other.name) == 0; }
};

/// Not thread-safe. A rail's place in the list does not change while it is usable, so peers' paths may refer to it by index.
class Rails {
  public:
    static constexpr uint16_t kMost = 16;
    static constexpr uint16_t kRouted = 0xffff;  ///< no rail of its own: as the kernel routes

    Rails() = default;
    Rails(const Rails&) = delete;
    Rails& operator=(const Rails&) = delete;
    ~Rails();

    /// Reads the interfaces and subscribes to their changes. MPI_ERR_OTHER with failure_text() if none is usable.
    int open(const InterfaceFilter& choice);
    /// Netlink socket: readable when something may have changed.
    int fd() const { return netlink_; }
    /// Takes note of changes; gives whether there were any.
    bool refresh();
    /// Counts changes.
    uint32_t version() const { return version_; }

    uint16_t count() const { return count_; }
    const Rail& operator[](uint16_t i) const { return rails_[i]; }
    Rail& operator[](uint16_t i) { return rails_[i]; }
    uint16_t usable() const;
    /// The rail with this interface index, kRouted if it is none of ours.
    uint16_t by_index(uint32_t index) const;
    /// Whether the address is one of this host's rails'.
    bool is_own(uint32_t address) const;
    /// The usable rail on the network of `address` that `used` (bits) has not, else one that it has; kRouted if none is.
    uint16_t towards(uint32_t address, uint32_t used) const;

  private:
    bool read();
    bool note_gone(const Rail* now, uint16_t count);
    bool note_all(const Rail* now, uint16_t count);
    bool note(const Rail& seen);

    InterfaceFilter choice_;
    Rail rails_[kMost];
    uint16_t count_ = 0;
    uint32_t version_ = 0;
    int netlink_ = -1;
};

}  // namespace starling::network
