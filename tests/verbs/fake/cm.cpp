// Fakes the functions of librdmacm by which the plugin joins multicast groups. A join takes effect at once.
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "fake/world.h"

using namespace fake;

namespace {

struct EventChannel {
    rdma_event_channel shown = {};
    std::deque<rdma_cm_event> events;
};

struct Identifier {
    rdma_cm_id shown = {};
    Device* device = nullptr;
    int joined = 0;
};

Gid gid_of_address(const sockaddr* address) {
    Gid gid = {};
    if (address->sa_family == AF_INET) {
        gid[10] = gid[11] = 0xff;
        std::memcpy(gid.data() + 12, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, 4);
    } else {
        std::memcpy(gid.data(), &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr, 16);
    }
    return gid;
}

int failure(int error) {
    if (!error) return 0;
    errno = error;
    return -1;
}

}  // namespace

extern "C" {

rdma_event_channel* rdma_create_event_channel(void) {
    const Locked locked(world().lock);
    if (failure(world().call("rdma_create_event_channel", nullptr))) return nullptr;
    auto* channel = new EventChannel;
    channel->shown.fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
    ++world().living["event channels"];
    return &channel->shown;
}

void rdma_destroy_event_channel(rdma_event_channel* shown) {
    const Locked locked(world().lock);
    close(shown->fd);
    --world().living["event channels"];
    delete &object<EventChannel>(shown);
}

int rdma_create_id(rdma_event_channel* channel, rdma_cm_id** id, void* owner, rdma_port_space space) {
    const Locked locked(world().lock);
    if (failure(world().call("rdma_create_id", nullptr))) return -1;
    auto* made = new Identifier;
    made->shown.channel = channel;
    made->shown.context = owner;
    made->shown.ps = space;
    ++world().living["identifiers"];
    *id = &made->shown;
    return 0;
}

int rdma_destroy_id(rdma_cm_id* shown) {
    const Locked locked(world().lock);
    auto& channel = object<EventChannel>(shown->channel);
    std::erase_if(channel.events, [&](const rdma_cm_event& event) { return event.id == shown; });
    --world().living["identifiers"];
    delete &object<Identifier>(shown);
    return 0;
}

int rdma_bind_addr(rdma_cm_id* shown, sockaddr* address) {
    const Locked locked(world().lock);
    if (failure(world().call("rdma_bind_addr", nullptr))) return -1;
    Device* device = world().device_of(gid_of_address(address));
    object<Identifier>(shown).device = device;
    return device ? 0 : failure(ENODEV);
}

int rdma_join_multicast(rdma_cm_id* shown, sockaddr* address, void*) {
    const Locked locked(world().lock);
    auto& id = object<Identifier>(shown);
    if (failure(world().call("rdma_join_multicast", id.device))) return -1;
    const int refused = world().call("rdma_join_multicast's answer", nullptr);
    const Gid gid = gid_of_address(address);
    rdma_cm_event event = {};
    event.id = shown;
    event.event = refused ? RDMA_CM_EVENT_MULTICAST_ERROR : RDMA_CM_EVENT_MULTICAST_JOIN;
    event.status = -refused;
    event.param.ud.qkey = 0x01234567;
    event.param.ud.qp_num = 0xffffff;
    std::memcpy(event.param.ud.ah_attr.grh.dgid.raw, gid.data(), gid.size());
    auto& channel = object<EventChannel>(shown->channel);
    channel.events.push_back(event);
    ++id.joined;
    const uint64_t one = 1;
    if (write(channel.shown.fd, &one, sizeof one) != sizeof one) misuse("cannot write to the event channel");
    return 0;
}

int rdma_leave_multicast(rdma_cm_id* shown, sockaddr*) {
    const Locked locked(world().lock);
    if (--object<Identifier>(shown).joined < 0) misuse("the program leaves a group that it has not joined");
    return 0;
}

int rdma_get_cm_event(rdma_event_channel* shown, rdma_cm_event** event) {
    uint64_t one = 0;
    if (read(shown->fd, &one, sizeof one) != sizeof one) return -1;
    const Locked locked(world().lock);
    auto& channel = object<EventChannel>(shown);
    if (channel.events.empty()) return failure(EAGAIN);
    *event = new rdma_cm_event(channel.events.front());
    channel.events.pop_front();
    return 0;
}

int rdma_ack_cm_event(rdma_cm_event* event) {
    delete event;
    return 0;
}

}  // extern "C"
