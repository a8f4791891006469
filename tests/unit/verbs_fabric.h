// InfiniBand in memory, for tests of the code above transport/verbs/device.h. Its ports exchange datagrams through a fabric that loses,
// duplicates and delays them as the test decides. Ports can fail, recover and be removed.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "transport/verbs/device.h"

namespace starling::verbs {

class Fabric;

class FabricPort;

/// A membership that takes effect at the next poll of its port.
class FabricMembership final : public PortMembership {
  public:
    FabricMembership(FabricPort& by, const uint8_t* gid) : port(by) { std::memcpy(group, gid, sizeof group); }
    MembershipState state() override { return state_; }
    WorkStatus send(const iovec* parts, int count) override;
    void leave() override;

    FabricPort& port;
    uint8_t group[16];
    MembershipState state_ = MembershipState::joining;
};

/// What the fabric does with one datagram.
enum class Passage { arrives, lost, doubled, late };

class FabricPort final : public Port {
  public:
    FabricPort(Fabric& by, const PortFacts& its_facts, uint32_t queue) : fabric_(by), facts_(its_facts), queue_(queue) {}

    const PortFacts& facts() const override { return facts_; }
    VerbsAddress address() const override {
        VerbsAddress mine;
        std::memcpy(mine.gid, facts_.gid, sizeof mine.gid);
        mine.queue = queue_;
        mine.key = 0x1234;
        mine.lid = facts_.lid;
        mine.mtu_log = static_cast<uint8_t>(__builtin_ctz(facts_.mtu));
        return mine;
    }
    uint32_t datagram_limit() const override { return facts_.mtu; }
    uint32_t frame_limit() const override { return 66'560; }
    WorkStatus send(const VerbsAddress& to, const iovec* parts, int count) override;
    Queue* make_queue(void*) override { return nullptr; }
    PortMembership* join(const uint8_t* gid) override {
        return groups.emplace_back(std::make_unique<FabricMembership>(*this, gid)).get();
    }
    bool enroll(void*, uint64_t, bool, Memory&) override { return false; }
    void dismiss(Memory&) override {}
    int poll(VerbsEvent* events, int most) override;
    void return_buffer(const VerbsEvent& event) override {
        --lent;
        delete static_cast<std::vector<uint64_t>*>(event.buffer);
    }
    int wait_fd() const override { return wake_; }
    bool arm() override {
        armed_ = true;
        return inbox_.empty() && news_.empty();
    }
    PortCounters counters() const override { return {.registered_bytes = 4096, .queue_bytes = 4096}; }
    const char* problem() const override { return ""; }
    void close() override;

    /// Queues a datagram for poll().
    void bring(std::vector<std::byte> bytes, const FabricPort& from);
    void happen(VerbsEvent::VerbsEventKind kind) {
        VerbsEvent event;
        event.kind = kind;
        news_.push_back(event);
        wake();
    }

    bool is_in(const uint8_t* gid) const {
        return std::any_of(groups.begin(), groups.end(), [gid](const auto& one) {
            return one->state_ == PortMembership::MembershipState::ready &&
                   std::memcmp(one->group, gid, sizeof one->group) == 0;
        });
    }
    /// Sends a datagram to all ports for which `whom` is true.
    WorkStatus carry(const iovec* parts, int count, std::function<bool(const FabricPort&)> whom);

    std::vector<std::unique_ptr<FabricMembership>> groups;
    bool refuses_groups = false;
    int lent = 0;            ///< number of receive buffers that the user has not returned
    size_t room = SIZE_MAX;  ///< number of datagrams that the port accepts until it is busy
    uint64_t sent = 0, received = 0;
    bool cut = false;  ///< whether the port sends and receives nothing, and reports no event about it

  private:
    friend class Fabric;
    void wake() {
        if (armed_) (void)!write(wake_, &kOne, sizeof kOne);
        armed_ = false;
    }
    static constexpr uint64_t kOne = 1;

    Fabric& fabric_;
    PortFacts facts_;
    uint32_t queue_;
    std::deque<VerbsEvent> inbox_, news_;
    int wake_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    bool armed_ = false;
};

/// All ports of a test, on all hosts. Only one fabric exists at a time.
class Fabric {
  public:
    Fabric() { the() = this; }
    ~Fabric() { the() = nullptr; }

    /// Adds a device with one port to the host that host() selects.
    PortFacts& add_device(int host, const std::string& name, uint8_t subnet = 1, uint32_t mtu = 1024) {
        PortFacts facts;
        std::strncpy(facts.device, name.c_str(), sizeof facts.device - 1);
        facts.port = 1;
        facts.active = facts.ethernet = true;
        facts.mtu = mtu;
        const uint8_t gid[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, subnet, 0, static_cast<uint8_t>(host + 1)};
        std::memcpy(facts.gid, gid, sizeof gid);
        devices.push_back({host, facts});
        return devices.back().facts;
    }
    /// Selects the host whose devices list() and open() use from now on.
    const Plugin& host(int which) {
        current = which;
        static constexpr Plugin kPlugin{kPluginVersion, &Fabric::list, &Fabric::open};
        return kPlugin;
    }
    FabricPort& port(int which) { return *ports[static_cast<size_t>(which)]; }

    /// Takes the device's link down, or up with a new queue number.
    void set_link(FabricPort& of, bool up) {
        of.facts_.active = up;
        for (Device& device : devices)
            if (std::strcmp(device.facts.device, of.facts_.device) == 0) device.facts.active = up;
        if (up) of.queue_ = ++queues;
        of.happen(up ? VerbsEvent::VerbsEventKind::up : VerbsEvent::VerbsEventKind::down);
    }
    void let_go() {
        auto late = std::move(held);
        held.clear();
        for (auto& one : late) one();
    }

    struct Device {
        int host;
        PortFacts facts;
    };
    std::deque<Device> devices;
    std::vector<FabricPort*> ports;  ///< open ports, in the order of opening
    std::vector<std::unique_ptr<FabricPort>> graves;
    std::vector<std::function<void()>> held;
    std::function<Passage()> passage;  ///< decides what happens to each datagram; if empty, all arrive
    std::string refusal;               ///< error with which opening a port fails; empty: none
    uint32_t queues = 100;
    int current = 0;

  private:
    static Fabric*& the() {
        static Fabric* fabric = nullptr;
        return fabric;
    }
    static int list(PortFacts* out, int most, const DeviceOptions*) {
        int count = 0;
        for (const Device& device : the()->devices)
            if (device.host == the()->current && count < most) out[count++] = device.facts;
        return count;
    }
    static Port* open(const PortFacts* which, const DeviceOptions*, char* problem, size_t problem_size) {
        if (!the()->refusal.empty()) {
            std::strncpy(problem, the()->refusal.c_str(), problem_size - 1);
            return nullptr;
        }
        the()->ports.push_back(new FabricPort(*the(), *which, ++the()->queues));
        return the()->ports.back();
    }
};

inline WorkStatus FabricPort::send(const VerbsAddress& to, const iovec* parts, int count) {
    return carry(parts, count, [to](const FabricPort& port) { return port.address() == to; });
}

inline WorkStatus FabricMembership::send(const iovec* parts, int count) {
    if (state_ != MembershipState::ready) return state_ == MembershipState::failed ? WorkStatus::broken : WorkStatus::busy;
    std::vector<uint8_t> gid(group, group + sizeof group);
    return port.carry(parts, count, [gid, own = &port](const FabricPort& one) { return &one != own && one.is_in(gid.data()); });
}

inline void FabricMembership::leave() {
    std::erase_if(port.groups, [this](const auto& one) { return one.get() == this; });
}

inline WorkStatus FabricPort::carry(const iovec* parts, int count, std::function<bool(const FabricPort&)> whom) {
    if (!facts_.active) return WorkStatus::broken;
    std::vector<std::byte> bytes;
    for (int i = 0; i < count; ++i) {
        const auto* const part = static_cast<const std::byte*>(parts[i].iov_base);
        bytes.insert(bytes.end(), part, part + parts[i].iov_len);
    }
    if (bytes.size() > facts_.mtu) return WorkStatus::too_long;
    if (room == 0) return WorkStatus::busy;
    --room;
    ++sent;
    const Passage what = cut ? Passage::lost : fabric_.passage ? fabric_.passage() : Passage::arrives;
    if (what == Passage::lost) return WorkStatus::done;
    for (int copies = what == Passage::doubled ? 2 : 1; copies > 0; --copies) {
        const auto arrive = [&fabric = fabric_, from = this, whom, bytes] {
            for (FabricPort* const port : fabric.ports)
                if (whom(*port) && port->facts_.active && !port->cut) port->bring(bytes, *from);
        };
        if (what == Passage::late)
            fabric_.held.push_back(arrive);
        else
            arrive();
    }
    return WorkStatus::done;
}

inline void FabricPort::bring(std::vector<std::byte> bytes, const FabricPort& from) {
    auto* const buffer = new std::vector<uint64_t>((bytes.size() + 7) / 8);
    std::memcpy(buffer->data(), bytes.data(), bytes.size());
    VerbsEvent event;
    event.bytes = static_cast<uint32_t>(bytes.size());
    event.data = reinterpret_cast<std::byte*>(buffer->data());
    event.source_queue = from.queue_;
    std::memcpy(event.gid, from.facts_.gid, sizeof event.gid);
    event.buffer = buffer;
    inbox_.push_back(event);
    ++received;
    wake();
}

inline int FabricPort::poll(VerbsEvent* events, int most) {
    for (auto& one : groups)
        if (one->state_ == PortMembership::MembershipState::joining)
            one->state_ = refuses_groups ? PortMembership::MembershipState::failed : PortMembership::MembershipState::ready;
    uint64_t rung;
    if (!armed_) (void)!read(wake_, &rung, sizeof rung);
    int count = 0;
    for (std::deque<VerbsEvent>* const queue : {&news_, &inbox_})
        for (; count < most && !queue->empty(); queue->pop_front()) {
            lent += queue == &inbox_;
            events[count++] = queue->front();
        }
    return count;
}

inline void FabricPort::close() {
    while (!inbox_.empty()) {
        ++lent;
        return_buffer(inbox_.front());
        inbox_.pop_front();
    }
    ::close(wake_);
    std::erase(fabric_.ports, this);
    fabric_.graves.emplace_back(this);
}

}  // namespace starling::verbs
