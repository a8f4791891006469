#include "plugins/verbs/port.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>

#include "plugins/verbs/clock.h"
#include "plugins/verbs/connection.h"
#include "plugins/verbs/device_list.h"

namespace starling::verbs {

VerbsPort::VerbsPort() : datagrams_(core_), groups_(core_, datagrams_) { core_.port = this; }

VerbsPort* VerbsPort::open(const PortFacts& which, const DeviceOptions& options, char* problem, size_t size) {
    VerbsPort* port = new (std::nothrow) VerbsPort;
    if (!port) return std::snprintf(problem, size, "no memory for a port"), nullptr;
    if (port->start(which, options)) return port;
    std::snprintf(problem, size, "%s", port->problem());
    delete port;
    return nullptr;
}

bool VerbsPort::watch(int descriptor) {
    epoll_event event = {.events = EPOLLIN, .data = {}};
    if (epoll_ctl(wait_, EPOLL_CTL_ADD, descriptor, &event) == 0) return true;
    core_.problem.describe("cannot wait for events of %s: %s", core_.facts.device, strerror(errno));
    return false;
}

bool VerbsPort::start(const PortFacts& which, const DeviceOptions& options) {
    if (!core_.make(which, options) || !datagrams_.make()) return false;
    wait_ = epoll_create1(EPOLL_CLOEXEC);
    if (wait_ < 0)
        return core_.problem.describe("cannot create a descriptor for events of %s: %s", core_.facts.device, strerror(errno)),
               false;
    groups_.wait_descriptor(wait_);
    return watch(core_.channel->fd) && watch(core_.context->async_fd);
}

VerbsPort::~VerbsPort() {
    for (const auto& [number, connection] : core_.connections) delete connection;
    core_.connections.clear();
    groups_.drop();
    datagrams_.drop();
    core_.drop();
    if (wait_ >= 0) ::close(wait_);
}

// No exception may leave the plugin: the caller may use another C++ library.
Queue* VerbsPort::make_queue(void* user) {
    try {
        return RcQueue::make(core_, user);
    } catch (const std::bad_alloc&) {
        core_.problem.describe("no memory for a connection");
        return nullptr;
    }
}

PortMembership* VerbsPort::join(const uint8_t* group_gid) {
    try {
        return groups_.join(group_gid);
    } catch (const std::bad_alloc&) {
        core_.problem.describe("no memory for a group");
        return nullptr;
    }
}

bool VerbsPort::enroll(void* memory, uint64_t bytes, bool remote, Memory& out) {
    if (core_.device_lost) return core_.problem.describe("%s has been removed", core_.facts.device), false;
    const int others = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    ibv_mr* registration =
        verbs::enroll(core_.domain, memory, bytes, IBV_ACCESS_LOCAL_WRITE | (remote ? others : 0), core_.problem);
    if (!registration) return false;
    out = {registration->lkey, registration->rkey, registration};
    core_.counters.registered_bytes += bytes;
    return true;
}

void VerbsPort::dismiss(Memory& memory) {
    auto* registration = static_cast<ibv_mr*>(memory.handle);
    if (!registration) return;
    core_.counters.registered_bytes -= registration->length;
    ibv_dereg_mr(registration);
    memory = {};
}

PortCounters VerbsPort::counters() const {
    PortCounters all = core_.counters;
    all.address_handles = datagrams_.addresses();
    return all;
}

// Polling

int VerbsPort::poll(VerbsEvent* events, int most) {
    core_.out = events;
    core_.out_end = events + most;
    if (RcQueue* owner = core_.chain.owner) owner->post_chain(false);
    core_.report_stored();
    while (core_.out != core_.out_end) {
        const auto room = static_cast<int>(core_.out_end - core_.out);
        const int asked = room < kTogether ? room : kTogether;
        const int found = poll_queue(asked);
        if (found > 0 && armed_ && !drain_channel()) fired_ = true;
        if (found < asked) break;
    }
    after_taking();
    if (const uint64_t now = coarse_now(); now - checked_at_ >= kLookEvery || (datagrams_.broken() && !down_)) {
        checked_at_ = now;
        check_state();
    }
    const auto count = static_cast<int>(core_.out - events);
    core_.out = core_.out_end = nullptr;
    return count;
}

int VerbsPort::poll_queue(int most) {
    ibv_wc completions[kTogether];
    const int found = core_.device_lost ? 0 : ibv_poll_cq(core_.completions, most, completions);
    for (int i = 0; i < found; ++i) handle_completion(completions[i]);
    return found > 0 ? found : 0;
}

void VerbsPort::handle_completion(const ibv_wc& completion) {
    const uint32_t number = number_of(completion.wr_id);
    const ibv_qp* pair = datagrams_.pair();
    const bool datagram = pair && completion.qp_num == pair->qp_num;
    const auto found = datagram ? core_.connections.end() : core_.connections.find(completion.qp_num);
    RcQueue* connection = found == core_.connections.end() ? nullptr : found->second;
    switch (work_of(completion.wr_id)) {
        case Work::receive:
            if (datagram) return datagrams_.received(completion, number);
            if (connection) return connection->received(completion, number);
            return core_.receive.return_buffer(number);
        case Work::datagram:
            if (datagram) datagrams_.ended(completion);
            return;
        case Work::connection:
            if (connection) connection->ended(completion);
            return;
    }
}

void VerbsPort::after_taking() {
    if (core_.starving && core_.freed) {
        core_.starving = false;
        datagrams_.report_room();
        for (const auto& [number, connection] : core_.connections) connection->report_room();
    }
    core_.freed = false;
    while (!core_.finished.empty()) {
        RcQueue* connection = core_.finished.back();
        core_.finished.pop_back();
        end_connection(connection);
    }
}

// Destroys a connection. The device's queue must be destroyed first, so that it adds no more completions while the completion queue is
// drained.
void VerbsPort::end_connection(RcQueue* connection) {
    const uint32_t number = connection->number();
    connection->end_pair();
    drain();
    core_.connections.erase(number);
    --core_.counters.queues;
    std::erase(core_.finished, connection);
    delete connection;
}

void VerbsPort::return_buffer(const VerbsEvent& event) {
    if (!event.buffer) return;
    core_.receive.return_buffer(
        static_cast<uint32_t>((static_cast<std::byte*>(event.buffer) - core_.receive.at(0)) / core_.receive.bytes()));
}

// Waiting

bool VerbsPort::drain_channel() {
    ibv_cq* which = nullptr;
    void* context = nullptr;
    if (ibv_get_cq_event(core_.channel, &which, &context) != 0) return false;
    ibv_ack_cq_events(which, 1);
    armed_ = fired_ = false;
    return true;
}

bool VerbsPort::arm() {
    if (RcQueue* owner = core_.chain.owner) owner->post_chain(false);
    core_.receive.post();
    if (core_.stored_first < core_.stored.size()) return false;
    if (core_.device_lost) return true;
    if (fired_) drain_channel();
    if (!armed_) armed_ = ibv_req_notify_cq(core_.completions, 0) == 0;
    // Poll again: completions from before the request for a notification raise no event.
    drain();
    after_taking();
    return core_.stored_first == core_.stored.size();
}

}  // namespace starling::verbs
