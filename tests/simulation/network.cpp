#include "network.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace starling::simulation {

namespace {
Network* the_network = nullptr;
}  // namespace

bool is_group(uint32_t address) { return ntohl(address) >> 28 == 14; }

Network* network() { return the_network; }

Network::Network(World& world, uint32_t hosts, uint32_t rails, const Weather& weather)
    : world_(world),
      hosts_(hosts),
      rails_(rails),
      weather_(weather),
      adapters_(hosts, prices()),
      up_(hosts * rails, true),
      silent_(hosts * rails, false) {
    the_network = this;
}

Network::~Network() { the_network = nullptr; }

// The address of a rail is 10.<rail + 1>.0.<host + 1>.
uint32_t Network::address(uint32_t host, uint32_t rail) const { return htonl(10u << 24 | (rail + 1) << 16 | (host + 1)); }
uint32_t Network::netmask() { return htonl(0xffff0000); }
uint32_t Network::host_of(uint32_t address) { return (ntohl(address) & 0xffff) - 1; }

uint32_t Network::rail_towards(uint32_t address) const {
    const uint32_t rail = (ntohl(address) >> 16 & 0xff) - 1;
    return ntohl(address) >> 24 == 10 && rail < rails_ && host_of(address) < hosts_ ? rail : rails_;
}

bool Network::carries(uint32_t from, uint32_t to, uint32_t rail) const { return works(from, rail) && works(to, rail); }

void Network::set_up(uint32_t host, uint32_t rail, bool up) {
    world_.note(up ? "rail up" : "rail down", host, rail);
    up_[host * rails_ + rail] = up;
    for (const auto& each : all_descriptors()) {
        auto* const news = as<RailNews>(each.get());
        if (!news || news->owner->host != host) continue;
        news->news = true;
        news->changed();
    }
}

uint64_t Network::latency(Path path) {
    if (!prices().exact) return weather_.latency_ns + world_.random.below(weather_.latency_ns + 1);
    const Prices::Figures& of = prices().of;
    const uint64_t all[] = {of.udp_latency, of.tcp_latency, of.ud_latency, of.rc_latency};
    return all[static_cast<size_t>(path)];
}

Adapters::Transfer Network::transfer(Path path, uint32_t from, uint32_t to, uint64_t bytes, Adapters::Sending* sending) {
    if (sending) return {sending->sent(), adapters_.reach(*sending, to)};
    const uint64_t takes = latency(path);
    if (!prices().exact) return {world_.now, world_.now + takes};
    return adapters_.send(from, to, bytes, world_.now, takes);
}

std::optional<Adapters::Sending> Network::begin_for_many(Path path, uint32_t from, uint64_t bytes) {
    if (!prices().exact) return {};
    return adapters_.begin(from, bytes, world_.now, latency(path));
}

bool Network::has_member(uint32_t host, uint32_t rail, const Address& group) {
    const std::vector<UdpSocket*>& all = bound(host, group.port);
    return std::any_of(all.begin(), all.end(), [&](const UdpSocket* one) { return one->hears(group.address, rail); });
}

int Network::send(Process& from, uint32_t rail, const Address& source, const Address& target, std::string_view bytes) {
    if (bytes.size() + 28 > weather_.mtu) return EMSGSIZE;
    if (rail >= rails_ || !is_up(from.host, rail)) return ENETUNREACH;
    ++sent;
    world_.happened();
    world_.note("datagram", target.port, bytes.size());
    const auto move_to = [&](uint32_t host, Adapters::Sending* sending) {
        carry(Path::udp, from.host, rail, host, rail, bytes.size(),
              [this, host, rail, source, target, text = std::string(bytes)]() mutable {
                  deliver(host, rail, source, target, std::move(text));
              },
              sending);
    };
    if (!is_group(target.address)) {
        move_to(host_of(target.address), nullptr);
        return 0;
    }
    // A multicast datagram: the switch knows the hosts with members, and each cable loses datagrams independently.
    // Random runs carry it to all hosts, whose sockets drop it.
    std::optional<Adapters::Sending> sending = begin_for_many(Path::udp, from.host, bytes.size());
    for (uint32_t host = 0; host < hosts_; ++host)
        if (host != from.host && (!sending || has_member(host, rail, target))) move_to(host, sending ? &*sending : nullptr);
    return 0;
}

uint64_t Network::carry(Path path, uint32_t from, uint32_t from_rail, uint32_t to, uint32_t to_rail, uint64_t bytes,
                        std::function<void()> arrive, Adapters::Sending* sending) {
    if (world_.random.with(weather_.loss) || !works(from, from_rail) || !works(to, to_rail)) {
        ++lost;
        return world_.now;
    }
    uint64_t sent_at = world_.now;
    const bool twice = world_.random.with(weather_.twice);
    doubled += twice;
    for (int copy = 0; copy < 1 + twice; ++copy) {
        const Adapters::Transfer transfer_times = transfer(path, from, to, bytes, sending);
        sent_at = transfer_times.sent;
        uint64_t takes = transfer_times.arrives - world_.now;
        if (world_.random.with(weather_.late)) {
            ++delayed;
            takes += world_.random.below(weather_.late_ns);
        }
        world_.at(world_.now + takes, [this, to, to_rail, arrive = copy == twice ? std::move(arrive) : arrive] {
            if (is_up(to, to_rail)) arrive();
        });
    }
    return sent_at;
}

// A socket connected to the sender takes precedence over an unconnected one.
void Network::deliver(uint32_t host, uint32_t rail, const Address& source, const Address& target, std::string bytes) {
    if (is_group(target.address)) {
        for (UdpSocket* const socket : bound(host, target.port)) {
            if (!socket->hears(target.address, rail) || socket->queue.size() >= weather_.queue) continue;
            socket->queue.push_back({source, target.address, rail, bytes});
            socket->changed();
        }
        return;
    }
    UdpSocket* best = nullptr;
    for (UdpSocket* const socket : bound(host, target.port)) {
        if (socket->bound.address != 0 && socket->bound.address != target.address) continue;
        if (socket->peer.port != 0 && socket->peer != source) continue;
        if (!best || socket->peer.port != 0) best = socket;
    }
    if (!best || best->queue.size() >= weather_.queue) {
        ++lost;
        return;
    }
    best->queue.push_back({source, target.address, rail, std::move(bytes)});
    best->changed();
}

UdpSocket::~UdpSocket() {
    if (bound.port != 0) std::erase(network()->bound(owner->host, bound.port), this);
}

bool UdpSocket::has_joined(uint32_t group, uint32_t rail) const {
    return std::any_of(groups.begin(), groups.end(),
                       [=](const JoinedGroup& one) { return one.address == group && one.rail == rail; });
}

bool UdpSocket::hears(uint32_t group, uint32_t rail) const {
    return std::any_of(groups.begin(), groups.end(), [=](const JoinedGroup& one) {
        return one.address == group && one.rail == rail && one.since <= world()->now;
    });
}

void UdpSocket::bind(const Address& to) {
    bound = to;
    if (bound.port == 0) bound.port = network()->free_port();
    network()->bound(owner->host, bound.port).push_back(this);
}

int UdpSocket::send(const Address& target, uint32_t rail, uint32_t source, std::string_view bytes) {
    Network& net = *network();
    if (is_group(target.address)) rail = group_rail;
    const uint32_t by = rail < net.rails() ? rail : net.rail_towards(target.address);
    if (by >= net.rails()) return ENETUNREACH;
    if (source == 0) source = bound.address != 0 ? bound.address : net.address(owner->host, by);
    return net.send(*owner, by, {source, bound.port}, target, bytes);
}

}  // namespace starling::simulation
