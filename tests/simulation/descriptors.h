// The open descriptors of simulated processes: sockets, epoll sets. Their numbers start above all real ones.
#pragma once

#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/uio.h>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <vector>

#include "world.h"

namespace starling::simulation {

struct Descriptor {
    Process* owner;
    uint64_t edges = 0;  ///< number of the events so far, for edge-triggered epoll sets

    explicit Descriptor(Process& its_owner) : owner(&its_owner) {}
    virtual ~Descriptor() = default;
    /// Returns the current events, as EPOLLIN and others.
    virtual uint32_t events() const = 0;
    /// Records an event that the owner may be waiting for.
    void changed() {
        ++edges;
        world()->happened();
        world()->stir(*owner);
        world()->wake_descriptors(*owner);
    }
};

/// Assigns the next descriptor number.
int open_descriptor(std::unique_ptr<Descriptor> made);
/// Returns null if the number is not a simulated descriptor.
Descriptor* descriptor(int fd);
/// Returns null if the descriptor is of another kind. Calls are frequent; the kinds are final and of this program, so
/// comparing the addresses of their types replaces a dynamic_cast.
template <class T>
T* as(Descriptor* of) {
    static_assert(std::is_final_v<T>);
    return of && &typeid(*of) == &typeid(T) ? static_cast<T*>(of) : nullptr;
}
template <class T>
T* descriptor_as(int fd) {
    return as<T>(descriptor(fd));
}
void close_descriptor(int fd);
/// Closes a process's descriptors, as the kernel does when it ends.
void close_all_of(const Process& process);
const std::vector<std::unique_ptr<Descriptor>>& all_descriptors();

struct EpollSet final : Descriptor {
    struct Item {
        int fd;
        epoll_event wanted;
        uint64_t seen;
    };
    std::vector<Item> items;

    using Descriptor::Descriptor;
    uint32_t events() const override;
    int control(int operation, int fd, const epoll_event* event);
    int take(epoll_event* events, int most);
};

/// A Unix datagram socket to which other processes write to ring a doorbell.
struct BellSocket final : Descriptor {
    uint32_t words = 0;

    using Descriptor::Descriptor;
    uint32_t events() const override { return (words > 0 ? EPOLLIN : 0u) | EPOLLOUT; }
};

/// name_of_bell() returns the name of the socket with this number, find_bell() the socket with this name; empty or null if there is none.
std::string name_of_bell(int fd);
BellSocket* find_bell(const std::string& name);

/// A netlink socket that reports changes of rails.
struct RailNews final : Descriptor {
    bool news = false;

    using Descriptor::Descriptor;
    uint32_t events() const override { return news ? EPOLLIN : 0u; }
};

struct Address {
    uint32_t address = 0;  ///< IPv4 address in network byte order
    uint16_t port = 0;     ///< port number in host byte order
    bool operator==(const Address&) const = default;
};

/// Returns the bytes of all parts, joined.
std::string gather(const iovec* parts, size_t count);
/// Copies bytes into the parts, as many as fit.
size_t scatter(std::string_view bytes, const iovec* parts, size_t count);

}  // namespace starling::simulation
