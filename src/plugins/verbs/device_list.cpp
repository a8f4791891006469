#include "plugins/verbs/device_list.h"

#include <arpa/inet.h>
#include <net/if.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "plugins/verbs/error_text.h"

namespace starling::verbs {

namespace {

constexpr size_t kMostGids = 256;

bool is_ipv4(const ibv_gid& gid) {
    static constexpr uint8_t kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    return std::memcmp(gid.raw, kMapped, sizeof kMapped) == 0;
}

bool is_link_local(const ibv_gid& gid) { return gid.raw[0] == 0xfe && (gid.raw[1] & 0xc0) == 0x80; }

// Returns the preference for a GID; the highest wins. RoCE version 2 can be routed and is the adapters' default. An IPv4 address is one
// that the user has configured.
int rank_of(const ibv_gid_entry& entry) {
    if (entry.gid_type == IBV_GID_TYPE_IB) return 5;
    const int version = entry.gid_type == IBV_GID_TYPE_ROCE_V2 ? 10 : 0;
    return version + (is_ipv4(entry.gid) ? 3 : is_link_local(entry.gid) ? 1 : 2);
}

bool choose_gid(ibv_context* context, uint8_t port, int wanted, PortFacts& facts) {
    ibv_gid_entry entries[kMostGids];
    const ssize_t count = ibv_query_gid_table(context, entries, kMostGids, 0);
    const ibv_gid_entry* best = nullptr;
    for (ssize_t i = 0; i < count; ++i) {
        const ibv_gid_entry& entry = entries[i];
        if (entry.port_num != port || entry.gid_index > 255) continue;
        if (wanted >= 0 ? static_cast<int>(entry.gid_index) == wanted : !best || rank_of(entry) > rank_of(*best)) best = &entry;
    }
    if (!best) return false;
    facts.gid_index = static_cast<uint8_t>(best->gid_index);
    std::memcpy(facts.gid, best->gid.raw, sizeof facts.gid);
    if (char name[IF_NAMESIZE]; best->ndev_ifindex && if_indextoname(best->ndev_ifindex, name))
        std::snprintf(facts.interface, sizeof facts.interface, "%s", name);
    return true;
}

[[gnu::format(printf, 2, 3)]] void refuse(PortFacts& facts, const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(facts.why_not, sizeof facts.why_not, format, arguments);
    va_end(arguments);
}

const char* cure_of(ibv_port_state state) {
    if (state == IBV_PORT_INIT) return "no subnet manager has configured it: start OpenSM or the switch's subnet manager";
    return "plug in its cable, and set its interface up (ip link set … up)";
}

void describe_device(ibv_context* context, PortFacts& facts, int& ports) {
    ibv_device_attr device = {};
    ports = 1;
    if (const int error = ibv_query_device(context, &device))
        return refuse(facts, "its attributes cannot be queried: %s", strerror(error));
    ports = device.phys_port_cnt;
    facts.most_queues = static_cast<uint32_t>(device.max_qp);
    facts.most_registered = device.max_mr_size;
    if (context->device->transport_type != IBV_TRANSPORT_IB)
        return refuse(facts, "it has no datagram queues (UD), like all iWARP devices; its IP network is used instead");
    if (device.max_srq == 0) return refuse(facts, "it has no shared receive queues; its IP network is used instead");
}

}  // namespace

void describe_port(ibv_context* context, uint8_t port, const DeviceOptions& options, PortFacts& facts) {
    facts.port = port;
    facts.why_not[0] = 0;
    ibv_port_attr attr = {};
    if (const int error = ibv_query_port(context, port, &attr)) {
        facts.active = false;
        return refuse(facts, "its port %d cannot be queried: %s", port, strerror(error));
    }
    facts.ethernet = attr.link_layer == IBV_LINK_LAYER_ETHERNET;
    facts.active = attr.state == IBV_PORT_ACTIVE;
    facts.lid = attr.lid;
    facts.mtu = bytes_of(attr.active_mtu);
    int ports = 0;
    describe_device(context, facts, ports);
    if (facts.why_not[0]) return;
    __be16 key = 0;
    if (const int error = ibv_query_pkey(context, port, options.pkey_index, &key))
        return refuse(facts, "it has no P_Key with index %d (STARLING_VERBS_PKEY_INDEX): %s", options.pkey_index,
                      strerror(error));
    facts.pkey = ntohs(key);
    const bool has_gid = choose_gid(context, port, options.gid_index, facts);
    if (!facts.active) return refuse(facts, "its link is down (%s): %s", ibv_port_state_str(attr.state), cure_of(attr.state));
    if (!has_gid && options.gid_index >= 0)
        return refuse(facts, "it has no GID with index %d: see 'ibv_devinfo -v' and STARLING_VERBS_GID_INDEX",
                      options.gid_index);
    if (!has_gid) return refuse(facts, "it has no GID: give its interface an address (ip address add)");
}

ibv_context* open_device(const char* name, char* problem, size_t size) {
    ibv_device** devices = ibv_get_device_list(nullptr);
    ibv_context* context = nullptr;
    std::snprintf(problem, size, "there is no device %s (any more): see 'ibv_devices'", name);
    for (int i = 0; devices && devices[i]; ++i) {
        if (std::strcmp(ibv_get_device_name(devices[i]), name) != 0) continue;
        errno = 0;
        context = ibv_open_device(devices[i]);
        if (!context) explain_open(problem, size, devices[i]->dev_name, errno ? errno : EIO);
    }
    if (devices) ibv_free_device_list(devices);
    return context;
}

int list_ports(PortFacts* out, int most, const DeviceOptions& options) {
    ibv_device** devices = ibv_get_device_list(nullptr);
    int count = 0;
    for (int i = 0; devices && devices[i] && count < most; ++i) {
        PortFacts facts;
        facts.port = 1;
        std::snprintf(facts.device, sizeof facts.device, "%s", ibv_get_device_name(devices[i]));
        errno = 0;
        ibv_context* context = ibv_open_device(devices[i]);
        if (!context) {
            explain_open(facts.why_not, sizeof facts.why_not, devices[i]->dev_name, errno ? errno : EIO);
            out[count++] = facts;
            continue;
        }
        int ports = 0;
        describe_device(context, facts, ports);
        for (int port = 1; port <= ports && count < most; ++port) {
            out[count] = facts;
            describe_port(context, static_cast<uint8_t>(port), options, out[count++]);
        }
        ibv_close_device(context);
    }
    if (devices) ibv_free_device_list(devices);
    return count;
}

}  // namespace starling::verbs
