// The fake's objects behind the program's handles (ibv_qp and others), and the network between the devices.
#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "fake/fabric.h"

namespace fake {

using Gid = std::array<uint8_t, 16>;

struct Device;
struct Context;
struct QueuePair;

/// A packet on the network. Requests of a connection are answered in order, by `reply` with a status.
struct Packet {
    enum Kind : uint8_t { datagram, send, write, write_note, read, fetch_add, compare_swap, reply };
    struct Header {
        Kind kind = datagram;
        uint8_t status = 0;
        bool with_word = false;
        Gid from = {}, to = {};
        uint32_t from_queue = 0, to_queue = 0;
        uint32_t key = 0;  ///< Q_Key of a datagram, or R_Key of an RDMA request
        uint32_t word = 0;
        uint32_t length = 0;
        uint32_t serial = 0;
        uint64_t address = 0, compare = 0, operand = 0;
    } header;
    std::vector<std::byte> data;
};

struct Registration {
    ibv_mr shown = {};
    int access = 0;
};

struct Channel {
    ibv_comp_channel shown = {};
    std::deque<ibv_cq*> fired;
};

struct CompletionQueue {
    ibv_cq shown = {};
    struct Entry {
        ibv_wc told;
        uint64_t work;  ///< value of QueuePair::freed when this completion has been polled
        bool of_send;
    };
    std::deque<Entry> entries;
    bool armed = false;
    uint32_t unacknowledged = 0;
    int users = 0;
};

struct ReceiveQueue {
    ibv_srq shown = {};
    uint32_t most = 0;
    struct Place {
        uint64_t id;
        ibv_sge where;
    };
    std::deque<Place> places;
    int users = 0;
};

struct AddressHandle {
    ibv_ah shown = {};
    ibv_ah_attr attributes = {};
};

struct Work {
    uint64_t id = 0, number = 0;
    bool told = false;
    uint32_t serial = 0;
    Packet packet;
    ibv_sge answer = {};  ///< memory into which read data is written
};

struct QueuePair {
    ibv_qp shown = {};
    ibv_qp_cap limits = {};
    ibv_qp_attr attributes = {};
    uint64_t posted = 0, freed = 0;  ///< counts of the send slots used and freed so far
    std::deque<Work> works;          ///< requests of a connection that the peer has not answered
    size_t sent = 0;                 ///< number of requests in `works` that were already sent
    std::deque<Packet> waiting;      ///< the peer's requests that found no receive buffer
    std::vector<Gid> groups;
    uint32_t serial = 0;

    Context& context() const;
    Gid gid() const;
    CompletionQueue& sends() const;
    CompletionQueue& receives() const;
    ReceiveQueue& stock() const;

    int post(const ibv_send_wr& work);
    void receive(Packet&& packet);
    void advance();
    void break_with(ibv_wc_status status);
    void serve_waiting();

  private:
    void post_datagram(const ibv_send_wr& work, const Work& as);
    bool serve(const Packet& packet);
    bool place(const Packet& packet, ibv_wc_opcode opcode);
    void answer(const Packet& request, ibv_wc_status status, std::vector<std::byte> data = {});
    void answered(const Packet& packet);
    void end(const Work& work, ibv_wc_status status);
};

struct Device {
    ibv_device shown = {};
    Facts facts;
    std::vector<std::pair<int, Gid>> gids;
    bool up = true, removed = false;
};

struct Context {
    ibv_context shown = {};
    Device* device = nullptr;
    std::deque<ibv_async_event> events;
    uint32_t unacknowledged = 0;
};

struct World {
    std::recursive_mutex lock;
    std::vector<std::unique_ptr<Device>> devices;  ///< all devices; reset() keeps them, because handles may point there
    size_t first_device = 0;                       ///< index in `devices` of the first device since the last reset()
    std::set<Context*> contexts;
    std::map<uint32_t, QueuePair*> pairs;
    std::map<uint32_t, Registration*> registrations;
    std::map<std::string, int> living;
    std::set<Gid> unreachable;
    uint32_t next_number = 0x100;
    uint32_t next_key = 1;

    Weather weather;
    std::mt19937 dice{1};
    std::vector<Packet> late;
    bool hold = false;
    Counts counts;

    uint64_t calls = 0, failing = 0;
    int error = 0;
    const char* failed = "";
    std::map<std::string, int> always;

    bool chance(uint32_t percent) { return percent && dice() % 100 < percent; }
    /// Returns the errno with which a call is to fail; 0: none.
    int call(const char* function, const Device* device);
    Device* device_of(const Gid& gid);
    QueuePair* pair(uint32_t number);
    /// Delivers a packet, or loses it. Returns false if a connection's peer is unreachable now.
    bool carry(Packet packet);
    void deliver(const Packet& packet);
    void release_late();
    void tell(Device& device, ibv_event_type type);
    void tell(CompletionQueue& queue, const ibv_wc& completion, uint64_t freed, bool of_send);
    /// Returns registered memory of the program; null if it is not registered for this access.
    std::byte* memory(uint64_t address, uint64_t bytes, uint32_t key, int access);
};

World& world();
[[noreturn, gnu::format(printf, 1, 2)]] void misuse(const char* format, ...);
Gid gid_of(const std::string& text);
Context& context_of(ibv_context* shown);

template <class Object, class Shown>
Object& object(Shown* shown) {
    static_assert(offsetof(Object, shown) == 0);
    return *reinterpret_cast<Object*>(shown);
}

using Locked = std::lock_guard<std::recursive_mutex>;

}  // namespace fake
