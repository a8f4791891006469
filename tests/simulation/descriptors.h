// What processes have open in the simulated world: sockets, epoll sets. Their numbers begin where no real ones are.
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
    uint64_t edges = 0;  ///< counts what an edge-triggered epoll set would tell of

    explicit Descriptor(Process& its_owner) : owner(&its_owner) {}
    virtual ~Descriptor() = default;
    /// EPOLLIN and others, as of now.
    virtual uint32_t events() const = 0;
    /// Something came about that its owner may be waiting for.
    void changed() {
        ++edges;
        world()->happened();
        world()->wake_descriptors(*owner);
    }
};

/// Gives it the next number.
int open_descriptor(std::unique_ptr<Descriptor> made);
/// Null: none of ours.
Descriptor* descriptor(int fd);
/// Null: it is of another kind. Nothing is derived from a kind, so this needs no walk over classes: calls are many.
template <class T>
T* as(Descriptor* of) {
    static_assert(std::is_final_v<T>);
    return of && typeid(*of) == typeid(T) ? static_cast<T*>(of) : nullptr;
}
template <class T>
T* descriptor_as(int fd) {
    return as<T>(descriptor(fd));
}
void close_descriptor(int fd);
/// What the kernel does when a process ends.
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

/// A Unix datagram socket: whoever rings a doorbell writes to it.
struct BellSocket final : Descriptor {
    uint32_t words = 0;

    using Descriptor::Descriptor;
    uint32_t events() const override { return (words > 0 ? EPOLLIN : 0u) | EPOLLOUT; }
};

/// The name that the socket with this number is found by, and back; null: there is none.
std::string name_of_bell(int fd);
BellSocket* find_bell(const std::string& name);

/// Netlink: says that rails have come or gone.
struct RailNews final : Descriptor {
    bool news = false;

    using Descriptor::Descriptor;
    uint32_t events() const override { return news ? EPOLLIN : 0u; }
};

struct Address {
    uint32_t address = 0;  ///< network byte order
    uint16_t port = 0;     ///< host byte order
    bool operator==(const Address&) const = default;
};

/// All bytes of a list of parts.
std::string gather(const iovec* parts, size_t count);
/// The other way, as many as fit.
size_t scatter(std::string_view bytes, const iovec* parts, size_t count);

}  // namespace starling::simulation
