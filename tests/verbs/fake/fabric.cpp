// The tests' controls (fabric.h), and the network between the fake devices.
#include "fake/fabric.h"

#include <arpa/inet.h>
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "fake/wire.h"
#include "fake/world.h"

namespace fake {

World& world() {
    static World* made = new World;
    return *made;
}

void misuse(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    std::fputs("fake verbs: ", stderr);
    std::vfprintf(stderr, format, arguments);
    std::fputc('\n', stderr);
    va_end(arguments);
    std::abort();
}

Gid gid_of(const std::string& text) {
    Gid gid = {};
    if (inet_pton(AF_INET6, text.c_str(), gid.data()) != 1) misuse("%s is not a GID", text.c_str());
    return gid;
}

Context& context_of(ibv_context* shown) { return object<Context>(shown); }

// Tests

void reset() {
    World& all = world();
    const Locked locked(all.lock);
    all.first_device = all.devices.size();
    all.unreachable.clear();
    all.late.clear();
    all.hold = false;
    all.counts = {};
    all.always.clear();
    set({});
    fail_call(0, 0);
}

void add(const Facts& facts) {
    World& all = world();
    const Locked locked(all.lock);
    auto device = std::make_unique<Device>();
    device->facts = facts;
    std::snprintf(device->shown.name, sizeof device->shown.name, "%s", facts.name.c_str());
    std::snprintf(device->shown.dev_name, sizeof device->shown.dev_name, "%s", facts.file.c_str());
    std::snprintf(device->shown.dev_path, sizeof device->shown.dev_path, "%s", facts.path.c_str());
    device->shown.node_type = facts.iwarp ? IBV_NODE_RNIC : IBV_NODE_CA;
    device->shown.transport_type = facts.iwarp ? IBV_TRANSPORT_IWARP : IBV_TRANSPORT_IB;
    for (const auto& [version, text] : facts.gids) device->gids.emplace_back(version, gid_of(text));
    if (facts.gids.empty())
        device->gids.emplace_back(2, gid_of("::ffff:10.0.0." + std::to_string(all.devices.size() - all.first_device + 1)));
    all.devices.push_back(std::move(device));
}

void set(const Weather& weather) {
    World& all = world();
    const Locked locked(all.lock);
    all.weather = weather;
    all.dice.seed(weather.seed);
}

std::string living() {
    World& all = world();
    const Locked locked(all.lock);
    std::string said;
    for (const auto& [kind, count] : all.living)
        if (count != 0) said += (said.empty() ? "" : ", ") + std::to_string(count) + " " + kind;
    return said;
}

void fail_call(uint64_t n, int error) {
    World& all = world();
    const Locked locked(all.lock);
    all.calls = 0;
    all.failing = n;
    all.error = error;
    all.failed = "";
}

uint64_t calls() { return world().calls; }
const char* failed_call() { return world().failed; }

void fail_always(const char* function, int error) {
    const Locked locked(world().lock);
    world().always[function] = error;
}

namespace {

Device& known(const std::string& name) {
    World& all = world();
    for (size_t i = all.first_device; i < all.devices.size(); ++i)
        if (all.devices[i]->facts.name == name) return *all.devices[i];
    misuse("there is no device %s", name.c_str());
}

}  // namespace

void set_link(const std::string& name, bool up) {
    World& all = world();
    const Locked locked(all.lock);
    Device& device = known(name);
    if (device.up == up) return;
    device.up = up;
    all.tell(device, up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR);
    for (const auto& [number, pair] : all.pairs) pair->advance();
}

void set_gid(const std::string& name, int index, const std::string& text) {
    World& all = world();
    const Locked locked(all.lock);
    Device& device = known(name);
    device.gids.at(static_cast<size_t>(index)).second = gid_of(text);
    all.tell(device, IBV_EVENT_GID_CHANGE);
}

void remove(const std::string& name) {
    World& all = world();
    const Locked locked(all.lock);
    Device& device = known(name);
    device.up = false;
    device.removed = true;
    all.tell(device, IBV_EVENT_DEVICE_FATAL);
}

void set_reachable(const std::string& gid, bool reachable) {
    World& all = world();
    const Locked locked(all.lock);
    if (reachable)
        all.unreachable.erase(gid_of(gid));
    else
        all.unreachable.insert(gid_of(gid));
}

void break_queue(uint32_t number, int status) {
    World& all = world();
    const Locked locked(all.lock);
    QueuePair* pair = all.pair(number);
    if (!pair) misuse("there is no queue pair %u", number);
    if (pair->works.empty()) {
        pair->shown.state = IBV_QPS_ERR;
        ibv_async_event event = {};
        event.event_type = IBV_EVENT_QP_FATAL;
        event.element.qp = &pair->shown;
        Context& context = pair->context();
        context.events.push_back(event);
        const uint64_t one = 1;
        if (write(context.shown.async_fd, &one, sizeof one) != sizeof one) misuse("cannot write to the event descriptor");
    }
    pair->break_with(static_cast<ibv_wc_status>(status));
}

void time_out() {
    World& all = world();
    const Locked locked(all.lock);
    for (const auto& [number, pair] : std::map(all.pairs)) {
        if (pair->works.empty() || pair->shown.state != IBV_QPS_RTS) continue;
        const QueuePair* peer = all.pair(pair->attributes.dest_qp_num);
        const bool answers = peer && pair->context().device->up && peer->context().device->up &&
                             (peer->shown.state == IBV_QPS_RTS || peer->shown.state == IBV_QPS_RTR);
        if (!answers) pair->break_with(IBV_WC_RETRY_EXC_ERR);
    }
}

void hold_completions(bool held) {
    const Locked locked(world().lock);
    world().hold = held;
}

Counts counts() { return world().counts; }

// --- The network ---

int World::call(const char* function, const Device* device) {
    if (device && device->removed) return EIO;
    if (const auto found = always.find(function); found != always.end() && found->second) return found->second;
    if (++calls != failing) return 0;
    failed = function;
    return error;
}

Device* World::device_of(const Gid& gid) {
    for (size_t i = first_device; i < devices.size(); ++i)
        for (const auto& [version, one] : devices[i]->gids)
            if (one == gid) return devices[i].get();
    return nullptr;
}

QueuePair* World::pair(uint32_t number) {
    const auto found = pairs.find(number);
    return found == pairs.end() ? nullptr : found->second;
}

bool World::carry(Packet packet) {
    const Device* from = device_of(packet.header.from);
    if (packet.header.kind != Packet::datagram) {
        if (wire::elsewhere(packet)) return wire::send(packet);
        const Device* to = device_of(packet.header.to);
        QueuePair* pair = this->pair(packet.header.to_queue);
        if (!from || !from->up || !to || !to->up || !pair || pair->context().device != to) return false;
        if (pair->shown.state != IBV_QPS_RTS && pair->shown.state != IBV_QPS_RTR) return false;
        pair->receive(std::move(packet));
        return true;
    }
    ++counts.datagrams;
    if (!from || !from->up || chance(weather.lose)) return ++counts.lost, true;
    if (chance(weather.late)) {
        ++counts.late;
        late.push_back(std::move(packet));
        return true;
    }
    deliver(packet);
    if (chance(weather.twice)) {
        ++counts.twice;
        deliver(packet);
    }
    release_late();
    return true;
}

// Delivers a datagram to its queue, or to all members of its group but the sender.
void World::deliver(const Packet& packet) {
    const bool here = device_of(packet.header.from) && pairs.contains(packet.header.from_queue);
    if (here && wire::elsewhere(packet)) wire::send(packet);
    if (packet.header.to_queue == 0xffffff) {
        for (const auto& [number, pair] : pairs)
            if (number != packet.header.from_queue && std::ranges::count(pair->groups, packet.header.to))
                pair->receive(Packet(packet));
        return;
    }
    QueuePair* pair = this->pair(packet.header.to_queue);
    const Device* to = device_of(packet.header.to);
    if (pair && pair->context().device == to) pair->receive(Packet(packet));
}

void World::release_late() {
    for (size_t i = 0; i < late.size();) {
        if (dice() % 2) {
            ++i;
            continue;
        }
        const Packet packet = std::move(late[i]);
        late.erase(late.begin() + static_cast<std::ptrdiff_t>(i));
        deliver(packet);
    }
}

void World::tell(Device& device, ibv_event_type type) {
    for (Context* context : contexts) {
        if (context->device != &device) continue;
        ibv_async_event event = {};
        event.event_type = type;
        event.element.port_num = 1;
        context->events.push_back(event);
        const uint64_t one = 1;
        if (write(context->shown.async_fd, &one, sizeof one) != sizeof one) misuse("cannot write to the event descriptor");
    }
}

void World::tell(CompletionQueue& queue, const ibv_wc& completion, uint64_t freed, bool of_send) {
    if (queue.entries.size() >= static_cast<size_t>(queue.shown.cqe))
        misuse("the completion queue of %d entries is overrun", queue.shown.cqe);
    queue.entries.push_back({completion, freed, of_send});
    if (!queue.armed || !queue.shown.channel) return;
    queue.armed = false;
    Channel& channel = object<Channel>(queue.shown.channel);
    channel.fired.push_back(&queue.shown);
    const uint64_t one = 1;
    if (write(channel.shown.fd, &one, sizeof one) != sizeof one) misuse("cannot write to the completion channel");
}

std::byte* World::memory(uint64_t address, uint64_t bytes, uint32_t key, int access) {
    const auto found = registrations.find(key);
    if (found == registrations.end()) return nullptr;
    const Registration& one = *found->second;
    const auto start = reinterpret_cast<uint64_t>(one.shown.addr);
    if (address < start || bytes > one.shown.length || address - start > one.shown.length - bytes) return nullptr;
    if ((one.access & access) != access) return nullptr;
    return reinterpret_cast<std::byte*>(address);
}

}  // namespace fake
