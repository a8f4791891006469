#include "device_port.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "device_queue.h"
#include "system.h"

namespace starling::simulation {

namespace {

constexpr uint32_t kKey = 0x1234;        ///< Q_Key of all datagram queues
constexpr uint64_t kSendNs = 1'000;      ///< time that a datagram occupies its send slot
constexpr uint64_t kJoinNs = 2'000'000;  ///< longest time until a join takes effect
constexpr uint64_t kOwnHostNs = 1'000;   ///< latency between processes of one host

uint64_t price_of_datagram(uint64_t bytes) { return prices().with_bytes(prices().of.ud_post, prices().of.ud_byte, bytes); }

/// Returns the price of taking this event from the completion queue.
uint64_t price_of(const verbs::VerbsEvent& event) {
    const Prices::Figures& of = prices().of;
    switch (event.kind) {
        case verbs::VerbsEvent::VerbsEventKind::datagram:
            return prices().with_bytes(of.ud_receive, of.ud_byte, event.bytes);
        case verbs::VerbsEvent::VerbsEventKind::frame:
            return prices().with_bytes(of.rc_receive, of.rc_byte, event.bytes);
        default:
            return of.rc_completion;
    }
}

}  // namespace

/// The descriptor on which a process waits for a port. It ends with its process.
struct PortChannel final : Descriptor {
    SimulatedPort* port;
    PortChannel(Process& owner, SimulatedPort& its_port) : Descriptor(owner), port(&its_port) {}
    ~PortChannel() override { delete port; }
    uint32_t events() const override { return port && port->fired() ? EPOLLIN : 0u; }
};

SimulatedPort::SimulatedPort(Devices& devices, Process& owner, uint32_t rail, const verbs::PortFacts& facts)
    : devices_(devices), owner_(owner), rail_(rail), facts_(facts) {
    devices_.ports.push_back(this);
    take_datagram_queue();
    note_most();
    channel_ = open_descriptor(std::make_unique<PortChannel>(owner, *this));
}

SimulatedPort::~SimulatedPort() {
    devices_.most.push_back(most_);
    queues_.clear();
    std::erase_if(devices_.memory, [this](const auto& one) { return one.second.by == this; });
    devices_.by_datagram_queue.erase(datagram_queue_);
    std::erase(devices_.ports, this);
}

void SimulatedPort::close() {
    auto* const channel = descriptor_as<PortChannel>(channel_);
    channel->port = nullptr;
    close_descriptor(channel_);
    delete this;
    world()->pass(prices().call);
}

// Draws a new queue number after each change, so that datagrams in transit to the old one have no receiver.
void SimulatedPort::take_datagram_queue() {
    devices_.by_datagram_queue.erase(datagram_queue_);
    datagram_queue_ = devices_.draw_number();
    devices_.by_datagram_queue[datagram_queue_] = this;
    sending_ = 0;
}

verbs::VerbsAddress SimulatedPort::address() const {
    verbs::VerbsAddress all;
    std::memcpy(all.gid, facts_.gid, sizeof all.gid);
    all.queue = datagram_queue_;
    all.key = kKey;
    all.mtu_log = static_cast<uint8_t>(std::bit_width(facts_.mtu) - 1);
    return all;
}

// Functions for datagrams.

bool SimulatedPort::takes_datagram(verbs::WorkStatus& status, const std::string& bytes) {
    status = verbs::WorkStatus::broken;
    if (!works()) return false;
    status = verbs::WorkStatus::too_long;
    if (bytes.size() > datagram_limit()) return false;
    status = verbs::WorkStatus::busy;
    if (sending_ >= devices_.weather().sends) return refused_busy_ = true, false;
    status = verbs::WorkStatus::done;
    ++sending_;
    ++count.datagrams_sent;
    if (!prices().exact) free_slot_at(devices_.world().now + kSendNs);
    return true;
}

void SimulatedPort::free_slot_at(uint64_t when) {
    devices_.world().at(when, [of = datagram_queue_] {
        const auto found = simulation::devices()->by_datagram_queue.find(of);
        if (found == simulation::devices()->by_datagram_queue.end()) return;
        SimulatedPort& port = *found->second;
        --port.sending_;
        if (!std::exchange(port.refused_busy_, false)) return;
        verbs::VerbsEvent event;
        event.kind = verbs::VerbsEvent::VerbsEventKind::room;
        port.tell(event);
    });
}

verbs::WorkStatus SimulatedPort::send(const verbs::VerbsAddress& to, const iovec* parts, int parts_count) {
    const std::string bytes = gather(parts, static_cast<size_t>(parts_count));
    pay(price_of_datagram(bytes.size()));
    verbs::WorkStatus status;
    if (!takes_datagram(status, bytes)) return status;
    uint32_t address = 0;
    std::memcpy(&address, to.gid + 12, sizeof address);
    const uint32_t rail = network()->rail_towards(address);
    if (rail >= network()->rails()) fail_run("a datagram goes to an address that no device has");
    if (to.key != kKey) fail_run("a datagram has a wrong key");
    world()->note("verbs datagram", to.queue, bytes.size());
    uint64_t sent = world()->now;
    if (rail == rail_ || devices_.weather().routed)
        sent = network()->carry(Path::ud, host(), rail_, Network::host_of(address), rail, bytes.size(),
                                [queue = to.queue, source = datagram_queue_, bytes, from = this->address()] {
                                    const auto found = simulation::devices()->by_datagram_queue.find(queue);
                                    if (found != simulation::devices()->by_datagram_queue.end())
                                        found->second->datagram(bytes, from, source, false);
                                });
    if (prices().exact) free_slot_at(sent);
    return after_paid(status);
}

void SimulatedPort::datagram(std::string_view bytes, const verbs::VerbsAddress& from, uint32_t source_queue, bool to_group) {
    if (!works()) return;
    verbs::VerbsEvent event;
    event.kind = verbs::VerbsEvent::VerbsEventKind::datagram;
    event.source_queue = source_queue;
    std::memcpy(event.gid, from.gid, sizeof event.gid);
    if (bring(event, bytes, to_group))
        ++count.datagrams_received;
    else
        ++network()->lost;
}

// Functions for multicast groups.

SimulatedMembership::SimulatedMembership(SimulatedPort& port, const uint8_t* gid) : port_(port) {
    std::memcpy(gid_, gid, sizeof gid_);
}

bool SimulatedMembership::is_of(const uint8_t* gid) const {
    return state_ == MembershipState::ready && std::memcmp(gid, gid_, sizeof gid_) == 0;
}

verbs::WorkStatus SimulatedMembership::send(const iovec* parts, int count) { return port_.send_to_group(gid_, parts, count); }

void SimulatedMembership::leave() { port_.drop_membership(*this); }

verbs::PortMembership* SimulatedPort::join(const uint8_t* group_gid) {
    SimulatedMembership& made = *memberships_.emplace_back(std::make_unique<SimulatedMembership>(*this, group_gid));
    made.number_ = devices_.draw_number();
    World& world = devices_.world();
    const bool fails = world.random.with(devices_.weather().refuses);
    world.at(world.now + (prices().exact ? prices().of.groups_join : world.random.below(kJoinNs)), [fails, number = made.number_] {
        for (SimulatedPort* const port : simulation::devices()->ports)
            for (const auto& one : port->memberships_)
                if (one->number_ == number)
                    one->state_ =
                        fails ? verbs::PortMembership::MembershipState::failed : verbs::PortMembership::MembershipState::ready;
    });
    return after(&made);
}

void SimulatedPort::drop_membership(SimulatedMembership& one) {
    std::erase_if(memberships_, [&one](const auto& each) { return each.get() == &one; });
}

bool SimulatedPort::is_member(const uint8_t* gid) const {
    return std::any_of(memberships_.begin(), memberships_.end(), [gid](const auto& one) { return one->is_of(gid); });
}

verbs::WorkStatus SimulatedPort::send_to_group(const uint8_t* gid, const iovec* parts, int parts_count) {
    const std::string bytes = gather(parts, static_cast<size_t>(parts_count));
    pay(price_of_datagram(bytes.size()) + prices().seal_price(bytes.size()));
    verbs::WorkStatus status;
    if (!takes_datagram(status, bytes)) return status;
    world()->note("verbs group", datagram_queue_, bytes.size());
    std::optional<Adapters::Sending> sending = network()->begin_for_many(Path::ud, host(), bytes.size());
    uint64_t sent = sending ? sending->sent() : world()->now;
    // The switch knows the rails with members; each cable loses datagrams independently. On the sender's own host the device delivers to
    // all other ports.
    for (const SimulatedPort* const port : devices_.ports) {
        if (port == this || port->rail() != rail_ || !port->is_member(gid)) continue;
        const auto arrive = [queue = port->datagram_queue_, source = datagram_queue_, bytes, from = address()] {
            const auto found = simulation::devices()->by_datagram_queue.find(queue);
            if (found != simulation::devices()->by_datagram_queue.end()) found->second->datagram(bytes, from, source, true);
        };
        if (port->host() == host())
            devices_.world().at(devices_.world().now + kOwnHostNs, arrive);
        else
            sent = network()->carry(Path::ud, host(), rail_, port->host(), rail_, bytes.size(), arrive, sending ? &*sending : nullptr);
    }
    if (prices().exact) free_slot_at(sent);
    return after_paid(status);
}

// Functions for queues and memory.

verbs::Queue* SimulatedPort::make_queue(void* user) {
    if (gone_ || devices_.world().random.with(devices_.weather().refuses)) return say("the device makes no queue"), nullptr;
    queues_.push_back(std::make_unique<SimulatedQueue>(*this, user));
    note_most();
    return after(queues_.back().get(), prices().exact ? prices().of.rc_open : prices().call);
}

void SimulatedPort::end(SimulatedQueue& queue) {
    std::erase_if(queues_, [&queue](const auto& each) { return each.get() == &queue; });
}

bool SimulatedPort::enroll(void* memory, uint64_t bytes, bool, verbs::Memory& out) {
    if (gone_ || devices_.world().random.with(devices_.weather().refuses)) return say("the device takes no memory"), false;
    const uint32_t key = devices_.draw_number();
    devices_.memory[key] = {this, reinterpret_cast<uint64_t>(memory), bytes};
    out = {key, key, nullptr};
    count.registered_bytes += bytes;
    note_most();
    return after(true, prices().exact ? prices().of.rdma_registration : prices().call);
}

void SimulatedPort::dismiss(verbs::Memory& memory) {
    const auto found = devices_.memory.find(memory.local);
    if (found == devices_.memory.end() || found->second.by != this)
        fail_run("memory is deregistered that this port has not registered");
    count.registered_bytes -= found->second.bytes;
    devices_.memory.erase(found);
    memory = {};
    world()->pass(prices().call);
}

// Functions for events.

void SimulatedPort::tell(const verbs::VerbsEvent& event) {
    events_.push_back(event);
    world()->happened();
    world()->stir(owner_);
    if (!armed_) {
        slept_through_ |= owner_.is_asleep() && !fired_;
        return;
    }
    armed_ = false;
    fired_ = true;
    descriptor(channel_)->changed();
}

// The copy is exactly as long as the data, so that the sanitizer finds reads past its end.
bool SimulatedPort::bring(verbs::VerbsEvent event, std::string_view bytes, bool to_group) {
    if (!has_buffer()) return false;
    auto& buffer = lent_.emplace_back(std::make_unique_for_overwrite<uint64_t[]>((bytes.size() + 7) / 8), to_group).memory;
    std::memcpy(buffer.get(), bytes.data(), bytes.size());
    event.buffer = buffer.get();
    event.data = reinterpret_cast<std::byte*>(buffer.get());
    event.bytes = static_cast<uint32_t>(bytes.size());
    tell(event);
    return true;
}

void SimulatedPort::return_buffer(const verbs::VerbsEvent& event) {
    const auto at = std::find_if(lent_.begin(), lent_.end(), [&](const auto& one) { return one.memory.get() == event.buffer; });
    if (at == lent_.end()) fail_run("a receive buffer is returned that is not in use");
    lent_.erase(at);
}

// Reports the events of each queue in order; events of different queues in any order.
int SimulatedPort::poll(verbs::VerbsEvent* events, int most) {
    int taken = 0;
    for (; taken < most && !events_.empty(); ++taken) {
        auto at = events_.begin();
        if (devices_.weather().mixes) {
            const void* const user = events_[devices_.world().random.below(events_.size())].user;
            at = std::find_if(events_.begin(), events_.end(), [user](const auto& one) { return one.user == user; });
        }
        events[taken] = *at;
        events_.erase(at);
    }
    const uint64_t rings = owner_.meter ? owner_.meter->rings_price() : 0;
    if (taken == 0) return rings == 0 ? 0 : after_nothing(0, rings);
    fired_ = false;
    if (!std::exchange(slept_through_, false)) owner_.lapsed = 0;
    world()->happened();
    uint64_t price = prices().exact ? rings : prices().call;
    for (int i = 0; prices().exact && i < taken; ++i) price += price_of(events[i]) + opening_price(events[i]);
    return after(taken, price);
}

uint64_t SimulatedPort::opening_price(const verbs::VerbsEvent& event) const {
    if (event.kind != verbs::VerbsEvent::VerbsEventKind::datagram) return 0;
    const auto at = std::find_if(lent_.begin(), lent_.end(), [&](const auto& one) { return one.memory.get() == event.buffer; });
    return at != lent_.end() && at->to_group ? prices().seal_price(event.bytes) : 0;
}

bool SimulatedPort::arm() {
    if (!events_.empty()) return false;
    armed_ = true;
    return true;
}

void SimulatedPort::forget(const void* user) {
    for (verbs::VerbsEvent& event : events_) {
        if (event.user != user) continue;
        event.user = nullptr;
        if (event.kind == verbs::VerbsEvent::VerbsEventKind::done) continue;
        if (event.buffer) return_buffer(event);
        event.kind = verbs::VerbsEvent::VerbsEventKind::broken;  // the event names no queue
        event.buffer = nullptr;
    }
}

void SimulatedPort::removed() {
    gone_ = true;
    say("the device has been removed");
    for (const auto& queue : queues_) queue->fail("the device has been removed");
    verbs::VerbsEvent event;
    event.kind = verbs::VerbsEvent::VerbsEventKind::down;
    tell(event);
}

void SimulatedPort::link_changed(bool up) {
    if (gone_) return;
    if (up) take_datagram_queue();
    verbs::VerbsEvent event;
    event.kind = up ? verbs::VerbsEvent::VerbsEventKind::up : verbs::VerbsEvent::VerbsEventKind::down;
    tell(event);
}

// Memory as the plugin counts it (src/plugins/verbs): the numbers are those of unit_plugins_verbs_memory_test.
verbs::PortCounters SimulatedPort::counters() const {
    constexpr uint64_t kBuffer = 64, kSends = 64, kPort = 43'008, kCompletion = 64, kPlaces = 64, kPlace = 16 + 256;
    constexpr uint64_t kLeastCompletions = 1'408, kWithoutConnections = 384;
    const DeviceWeather& weather = devices_.weather();
    verbs::PortCounters all = count;
    all.queues = queues_.size();
    all.queue_bytes = uint64_t{weather.receives} * (weather.frame + kBuffer) + kSends * weather.frame;
    all.registered_bytes += all.queue_bytes;
    uint64_t completions = kLeastCompletions;
    while (completions < kWithoutConnections + all.queues * kPlaces) completions *= 2;
    all.queue_memory = kPort + completions * kCompletion + all.queues * kPlaces * kPlace;
    return all;
}

void SimulatedPort::note_most() {
    const verbs::PortCounters now = counters();
    most_.queues = std::max(most_.queues, now.queues);
    most_.queue_memory = std::max(most_.queue_memory, now.queue_memory);
    most_.registered_bytes = std::max(most_.registered_bytes, now.registered_bytes);
}

}  // namespace starling::simulation
