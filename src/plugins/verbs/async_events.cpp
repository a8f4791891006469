// The asynchronous events of a device: changes of its port's link and addresses, queues in error, the device's removal.
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "plugins/verbs/connection.h"
#include "plugins/verbs/device_list.h"
#include "plugins/verbs/port.h"

namespace starling::verbs {

void VerbsPort::check_state() {
    if (core_.device_lost) return;
    ibv_async_event event;
    while (!core_.device_lost && ibv_get_async_event(core_.context, &event) == 0) {
        happened(event);
        ibv_ack_async_event(&event);
    }
    if (!core_.device_lost && checked_at_ - found_ >= kFindEvery) {
        found_ = checked_at_;
        const char* path = core_.context->device->dev_path;
        if (path[0] && access(path, F_OK) != 0 && errno == ENOENT) lost_device();
    }
    if (core_.device_lost) return;
    groups_.check_groups();
    if (again_ && checked_at_ >= again_) on_up();
    // If a failed datagram has stopped the queue, create the queue again. Its users are notified as if the port had gone down and come up.
    if (datagrams_.broken() && !down_) {
        went_down("its datagram queue broke");
        on_up();
    }
}

void VerbsPort::happened(const ibv_async_event& event) {
    const bool ours = event.element.port_num == core_.facts.port;
    switch (event.event_type) {
        case IBV_EVENT_DEVICE_FATAL:
            return lost_device();
        case IBV_EVENT_PORT_ERR:
            if (ours) went_down("its link is down");
            return;
        case IBV_EVENT_PORT_ACTIVE:
            if (ours && down_) on_up();
            return;
        case IBV_EVENT_LID_CHANGE:
        case IBV_EVENT_PKEY_CHANGE:
        case IBV_EVENT_GID_CHANGE:
            if (ours) return address_may_have_changed();
            return;
        case IBV_EVENT_CLIENT_REREGISTER:
            if (ours) groups_.join_again();
            return;
        case IBV_EVENT_CQ_ERR:
        case IBV_EVENT_SRQ_ERR:
            return lost_device();
        case IBV_EVENT_QP_FATAL:
        case IBV_EVENT_QP_REQ_ERR:
        case IBV_EVENT_QP_ACCESS_ERR:
            if (auto* connection = static_cast<RcQueue*>(event.element.qp->qp_context))
                connection->broke(ibv_event_type_str(event.event_type));
            else
                datagrams_.broke(ibv_event_type_str(event.event_type));
            return;
        default:
            return;
    }
}

void VerbsPort::address_may_have_changed() {
    PortFacts now = core_.facts;
    describe_port(core_.context, core_.facts.port, core_.options, now);
    const bool same = now.gid_index == core_.facts.gid_index && std::memcmp(now.gid, core_.facts.gid, sizeof now.gid) == 0 &&
                      now.lid == core_.facts.lid && now.pkey == core_.facts.pkey;
    if (same && !now.why_not[0]) {
        if (down_) on_up();
        return;
    }
    went_down(now.why_not[0] ? now.why_not : "its address changed");
    on_up();
}

void VerbsPort::went_down(const char* why) {
    if (down_) return;
    down_ = true;
    core_.facts.active = false;
    core_.problem.describe("%s:%u: %s", core_.facts.device, core_.facts.port, why);
    core_.report({.kind = VerbsEvent::VerbsEventKind::down, .status = WorkStatus::broken});
}

// Reads the port's attributes again and creates the datagram queue anew: the port's address may have changed, and handles and queues
// contain the old one.
void VerbsPort::on_up() {
    again_ = checked_at_ + kAgain;
    PortFacts now = core_.facts;
    describe_port(core_.context, core_.facts.port, core_.options, now);
    if (now.why_not[0]) return core_.problem.describe("%s:%u: %s", core_.facts.device, core_.facts.port, now.why_not);
    // The MTU must not grow, since the buffers were allocated for the earlier one.
    now.mtu = now.mtu < core_.facts.mtu ? now.mtu : core_.facts.mtu;
    now.inline_bytes = core_.facts.inline_bytes;
    core_.facts = now;
    groups_.leave_queue();
    datagrams_.drop();
    drain();
    if (!datagrams_.make()) return;
    again_ = 0;
    groups_.join_again();
    down_ = false;
    core_.report({.kind = VerbsEvent::VerbsEventKind::up});
}

void VerbsPort::lost_device() {
    core_.device_lost = true;
    core_.facts.active = false;
    for (const auto& [number, connection] : core_.connections) connection->lost();
    const bool told = down_;
    down_ = true;
    core_.problem.describe("%s has been removed, or reset by its driver", core_.facts.device);
    if (!told) core_.report({.kind = VerbsEvent::VerbsEventKind::down, .status = WorkStatus::broken});
}

}  // namespace starling::verbs
