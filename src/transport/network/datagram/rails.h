// The rails of the network transport: the interfaces of this host that it may use. They may appear and disappear at any time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "job/interface_filter.h"

namespace starling::network {

using job::InterfaceFilter;

struct Rail {
    char name[16] = {};
    uint32_t index = 0;    ///< the kernel's number of the interface
    uint32_t address = 0;  ///< IPv4 address, network byte order
    uint32_t netmask = 0;
    uint32_t mtu = 0;     ///< longest IP packet, bytes
    bool usable = false;  ///< whether the interface is up and connected; false: it was usable before
    bool loopback = false;
    uint64_t bytes_sent = 0, bytes_received = 0;

    bool is(const Rail& other) const { return address == other.address && std::strcmp(name, other.name) == 0; }
};

/// The list of rails. Not thread-safe. A rail's index does not change while it is usable, so peers' paths may refer to it by index.
class Rails {
  public:
    static constexpr uint16_t kMost = 16;
    static constexpr int kMostMessages = 64;     ///< number of netlink messages that refresh() reads, which may never end
    static constexpr uint16_t kRouted = 0xffff;  ///< value in place of a rail's index: the kernel's routing decides

    Rails() = default;
    Rails(const Rails&) = delete;
    Rails& operator=(const Rails&) = delete;
    ~Rails();

    /// Reads the interfaces and subscribes to their changes. Returns MPI_ERR_OTHER with failure_text() if none is usable.
    int open(const InterfaceFilter& choice);
    /// Returns a netlink socket that is readable when something may have changed; -1: none.
    int fd() const { return netlink_; }
    /// Updates the list after changes; returns whether there were any. Leaves messages beyond kMostMessages to the next call.
    bool refresh();
    /// Returns the number of changes so far.
    uint32_t version() const { return version_; }

    uint16_t count() const { return count_; }
    const Rail& operator[](uint16_t i) const { return rails_[i]; }
    Rail& operator[](uint16_t i) { return rails_[i]; }
    uint16_t usable() const;
    /// Returns the rail with this interface index, kRouted if there is none.
    uint16_t by_index(uint32_t index) const;
    /// Returns whether a usable rail has this address.
    bool is_own(uint32_t address) const;
    /// Returns a usable rail on the network of `address`, preferably one that is not in the bit set `used`; kRouted if there is none.
    uint16_t towards(uint32_t address, uint32_t used) const;

  private:
    bool read();
    bool note_lost(const Rail* now, uint16_t count);
    bool note_all(const Rail* now, uint16_t count);
    bool note(const Rail& seen);

    InterfaceFilter choice_;
    Rail rails_[kMost];
    uint16_t count_ = 0;
    uint32_t version_ = 0;
    int netlink_ = -1;
};

}  // namespace starling::network
