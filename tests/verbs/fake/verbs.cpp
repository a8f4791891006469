// Fakes the functions of libibverbs that the plugin calls.
#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "fake/wire.h"
#include "fake/world.h"

// The header defines these functions as macros, which would rename the definitions below.
#undef ibv_reg_mr
#undef ibv_query_port

using namespace fake;

namespace {

// Returns whether the call is to fail, and sets errno as the library does in functions that return a pointer.
bool fails(const char* function, const Context* context) {
    const int error = world().call(function, context ? context->device : nullptr);
    if (error) errno = error;
    return error != 0;
}

template <class Object>
void ended(Object* object, const char* kind) {
    --world().living[kind];
    delete object;
}

void counted(const char* kind) { ++world().living[kind]; }

int new_event_descriptor() {
    const int descriptor = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
    if (descriptor < 0) misuse("cannot create an eventfd: %s", strerror(errno));
    return descriptor;
}

bool take_event(int descriptor) {
    uint64_t one = 0;
    return read(descriptor, &one, sizeof one) == sizeof one;
}

int poll_cq(ibv_cq* shown, int most, ibv_wc* out) {
    World& all = world();
    const Locked locked(all.lock);
    auto& queue = object<CompletionQueue>(shown);
    all.release_late();
    if (all.hold || context_of(shown->context).device->removed) return 0;
    int count = 0;
    while (count < most && !queue.entries.empty()) {
        auto chosen = queue.entries.begin();
        if (all.weather.mix_queues) {
            const uint32_t pair = queue.entries[all.dice() % queue.entries.size()].told.qp_num;
            chosen = std::ranges::find_if(queue.entries, [&](const auto& entry) { return entry.told.qp_num == pair; });
        }
        out[count++] = chosen->told;
        if (QueuePair* pair = all.pair(chosen->told.qp_num); pair && chosen->of_send) pair->freed = chosen->work;
        queue.entries.erase(chosen);
    }
    return count;
}

int req_notify_cq(ibv_cq* shown, int) {
    World& all = world();
    const Locked locked(all.lock);
    if (const int error = all.call("ibv_req_notify_cq", context_of(shown->context).device)) return error;
    object<CompletionQueue>(shown).armed = true;
    return 0;
}

int post_srq_recv(ibv_srq* shown, ibv_recv_wr* work, ibv_recv_wr** bad) {
    World& all = world();
    const Locked locked(all.lock);
    auto& queue = object<ReceiveQueue>(shown);
    for (; work; work = work->next) {
        *bad = work;
        if (const int error = all.call("ibv_post_srq_recv", context_of(shown->context).device)) return error;
        if (queue.places.size() >= queue.most || work->num_sge != 1) return ENOMEM;
        queue.places.push_back({work->wr_id, *work->sg_list});
    }
    for (const auto& [number, pair] : std::map(all.pairs))
        if (pair->shown.srq == shown && !pair->waiting.empty()) pair->serve_waiting();
    return 0;
}

int post_send(ibv_qp* shown, ibv_send_wr* work, ibv_send_wr** bad) {
    World& all = world();
    const Locked locked(all.lock);
    auto& pair = object<QueuePair>(shown);
    ++all.counts.bells;
    for (; work; work = work->next) {
        *bad = work;
        int error = all.call("ibv_post_send", pair.context().device);
        if (!error) error = pair.post(*work);
        if (error) return pair.advance(), error;
    }
    pair.advance();
    return 0;
}

}  // namespace

extern "C" {

int ibv_fork_init(void) { return world().call("ibv_fork_init", nullptr); }

ibv_device** ibv_get_device_list(int* count) {
    World& all = world();
    const Locked locked(all.lock);
    wire::find_devices();
    if (fails("ibv_get_device_list", nullptr)) return nullptr;
    auto** list = new ibv_device*[all.devices.size() + 1];
    int found = 0;
    for (size_t i = all.first_device; i < all.devices.size(); ++i)
        if (!all.devices[i]->removed) list[found++] = &all.devices[i]->shown;
    list[found] = nullptr;
    if (count) *count = found;
    counted("device lists");
    return list;
}

void ibv_free_device_list(ibv_device** list) {
    const Locked locked(world().lock);
    --world().living["device lists"];
    delete[] list;
}

const char* ibv_get_device_name(ibv_device* device) { return device->name; }

ibv_context* ibv_open_device(ibv_device* shown) {
    const Locked locked(world().lock);
    auto& device = object<Device>(shown);
    if (device.facts.open_error || device.removed) return errno = device.removed ? ENODEV : device.facts.open_error, nullptr;
    if (fails("ibv_open_device", nullptr)) return nullptr;
    auto* context = new Context;
    context->device = &device;
    context->shown.device = shown;
    context->shown.ops.poll_cq = poll_cq;
    context->shown.ops.req_notify_cq = req_notify_cq;
    context->shown.ops.post_srq_recv = post_srq_recv;
    context->shown.ops.post_send = post_send;
    context->shown.async_fd = new_event_descriptor();
    context->shown.num_comp_vectors = 1;
    world().contexts.insert(context);
    counted("contexts");
    return &context->shown;
}

int ibv_close_device(ibv_context* shown) {
    const Locked locked(world().lock);
    Context& context = context_of(shown);
    if (context.unacknowledged) misuse("a device is closed with %u events not acknowledged", context.unacknowledged);
    close(context.shown.async_fd);
    world().contexts.erase(&context);
    ended(&context, "contexts");
    return 0;
}

int ibv_query_device(ibv_context* shown, ibv_device_attr* attributes) {
    const Locked locked(world().lock);
    const Device& device = *context_of(shown).device;
    if (const int error = world().call("ibv_query_device", &device)) return error;
    *attributes = {};
    attributes->max_mr_size = uint64_t{1} << 40;
    attributes->max_qp = device.facts.most_queues;
    attributes->max_qp_wr = 16384;
    attributes->max_sge = 4;
    attributes->max_cqe = device.facts.most_completions;
    attributes->max_qp_rd_atom = attributes->max_qp_init_rd_atom = device.facts.most_reads;
    attributes->max_srq = device.facts.shared_receive ? 100 : 0;
    attributes->max_srq_wr = device.facts.most_receives;
    attributes->max_srq_sge = 4;
    attributes->phys_port_cnt = 1;
    return 0;
}

int ibv_query_port(ibv_context* shown, uint8_t port, _compat_ibv_port_attr* out) {
    const Locked locked(world().lock);
    const Device& device = *context_of(shown).device;
    if (const int error = world().call("ibv_query_port", &device)) return error;
    if (port != 1) return EINVAL;
    auto* attributes = reinterpret_cast<ibv_port_attr*>(out);
    attributes->state = device.up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
    attributes->max_mtu = IBV_MTU_4096;
    attributes->active_mtu = static_cast<ibv_mtu>(__builtin_ctz(device.facts.mtu) - 7);
    attributes->lid = device.facts.lid;
    attributes->gid_tbl_len = static_cast<int>(device.gids.size());
    attributes->pkey_tbl_len = 1;
    attributes->link_layer = device.facts.ethernet ? IBV_LINK_LAYER_ETHERNET : IBV_LINK_LAYER_INFINIBAND;
    return 0;
}

int ibv_query_pkey(ibv_context* shown, uint8_t, int index, __be16* key) {
    const Locked locked(world().lock);
    if (const int error = world().call("ibv_query_pkey", context_of(shown).device)) return error;
    if (index != 0) return EINVAL;
    *key = 0xffff;
    return 0;
}

ssize_t _ibv_query_gid_table(ibv_context* shown, ibv_gid_entry* entries, size_t most, uint32_t, size_t) {
    const Locked locked(world().lock);
    const Device& device = *context_of(shown).device;
    if (const int error = world().call("ibv_query_gid_table", &device)) return -error;
    size_t count = 0;
    for (size_t i = 0; i < device.gids.size() && count < most; ++i) {
        const auto& [version, gid] = device.gids[i];
        if (gid == Gid{}) continue;
        entries[count] = {};
        std::memcpy(entries[count].gid.raw, gid.data(), gid.size());
        entries[count].gid_index = static_cast<uint32_t>(i);
        entries[count].port_num = 1;
        entries[count++].gid_type = version == 2 ? IBV_GID_TYPE_ROCE_V2 : version == 1 ? IBV_GID_TYPE_ROCE_V1 : IBV_GID_TYPE_IB;
    }
    return static_cast<ssize_t>(count);
}

ibv_pd* ibv_alloc_pd(ibv_context* context) {
    const Locked locked(world().lock);
    if (fails("ibv_alloc_pd", &context_of(context))) return nullptr;
    counted("protection domains");
    return new ibv_pd{context, 0};
}

int ibv_dealloc_pd(ibv_pd* domain) {
    const Locked locked(world().lock);
    ended(domain, "protection domains");
    return 0;
}

ibv_mr* ibv_reg_mr(ibv_pd* domain, void* address, size_t length, int access) {
    World& all = world();
    const Locked locked(all.lock);
    if (fails("ibv_reg_mr", &context_of(domain->context))) return nullptr;
    auto* one = new Registration;
    one->shown = {domain->context, domain, address, length, 0, all.next_key, all.next_key};
    one->access = access;
    all.registrations[all.next_key++] = one;
    counted("registrations");
    return &one->shown;
}

ibv_mr* ibv_reg_mr_iova2(ibv_pd* domain, void* address, size_t length, uint64_t, unsigned access) {
    return ibv_reg_mr(domain, address, length, static_cast<int>(access));
}

int ibv_dereg_mr(ibv_mr* shown) {
    const Locked locked(world().lock);
    world().registrations.erase(shown->lkey);
    ended(&object<Registration>(shown), "registrations");
    return 0;
}

ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
    const Locked locked(world().lock);
    if (fails("ibv_create_comp_channel", &context_of(context))) return nullptr;
    auto* channel = new Channel;
    channel->shown = {context, new_event_descriptor(), 0};
    counted("completion channels");
    return &channel->shown;
}

int ibv_destroy_comp_channel(ibv_comp_channel* shown) {
    const Locked locked(world().lock);
    if (shown->refcnt) misuse("a completion channel is destroyed before its queues");
    close(shown->fd);
    ended(&object<Channel>(shown), "completion channels");
    return 0;
}

ibv_cq* ibv_create_cq(ibv_context* context, int entries, void* owner, ibv_comp_channel* channel, int) {
    const Locked locked(world().lock);
    if (fails("ibv_create_cq", &context_of(context))) return nullptr;
    if (entries > context_of(context).device->facts.most_completions) return errno = EINVAL, nullptr;
    auto* queue = new CompletionQueue;
    queue->shown.context = context;
    queue->shown.channel = channel;
    queue->shown.cq_context = owner;
    queue->shown.cqe = entries;
    if (channel) ++channel->refcnt;
    counted("completion queues");
    return &queue->shown;
}

int ibv_resize_cq(ibv_cq* shown, int entries) {
    const Locked locked(world().lock);
    if (const int error = world().call("ibv_resize_cq", context_of(shown->context).device)) return error;
    if (entries > context_of(shown->context).device->facts.most_completions) return EINVAL;
    shown->cqe = entries;
    return 0;
}

int ibv_destroy_cq(ibv_cq* shown) {
    const Locked locked(world().lock);
    auto& queue = object<CompletionQueue>(shown);
    if (queue.users) misuse("a completion queue is destroyed before its %d queue pairs", queue.users);
    if (queue.unacknowledged) misuse("a completion queue is destroyed with %u events not acknowledged", queue.unacknowledged);
    if (shown->channel) {
        std::erase(object<Channel>(shown->channel).fired, shown);
        --shown->channel->refcnt;
    }
    ended(&queue, "completion queues");
    return 0;
}

int ibv_get_cq_event(ibv_comp_channel* shown, ibv_cq** which, void** owner) {
    if (!take_event(shown->fd)) return -1;
    const Locked locked(world().lock);
    auto& channel = object<Channel>(shown);
    if (channel.fired.empty()) return -1;
    *which = channel.fired.front();
    *owner = (*which)->cq_context;
    channel.fired.pop_front();
    ++object<CompletionQueue>(*which).unacknowledged;
    return 0;
}

void ibv_ack_cq_events(ibv_cq* shown, unsigned count) {
    const Locked locked(world().lock);
    object<CompletionQueue>(shown).unacknowledged -= count;
}

ibv_srq* ibv_create_srq(ibv_pd* domain, ibv_srq_init_attr* attributes) {
    const Locked locked(world().lock);
    const Context& context = context_of(domain->context);
    if (fails("ibv_create_srq", &context)) return nullptr;
    if (static_cast<int>(attributes->attr.max_wr) > context.device->facts.most_receives) return errno = EINVAL, nullptr;
    auto* queue = new ReceiveQueue;
    queue->shown.context = domain->context;
    queue->shown.pd = domain;
    queue->most = attributes->attr.max_wr;
    counted("shared receive queues");
    return &queue->shown;
}

int ibv_destroy_srq(ibv_srq* shown) {
    const Locked locked(world().lock);
    auto& queue = object<ReceiveQueue>(shown);
    if (queue.users) misuse("a shared receive queue is destroyed before its %d queue pairs", queue.users);
    ended(&queue, "shared receive queues");
    return 0;
}

ibv_qp* ibv_create_qp(ibv_pd* domain, ibv_qp_init_attr* attributes) {
    World& all = world();
    const Locked locked(all.lock);
    Context& context = context_of(domain->context);
    const Facts& facts = context.device->facts;
    if (fails("ibv_create_qp", &context)) return nullptr;
    if (attributes->qp_type == IBV_QPT_UD && !facts.datagrams) return errno = EOPNOTSUPP, nullptr;
    if (attributes->cap.max_inline_data > facts.most_inline) return errno = EINVAL, nullptr;
    if (std::ranges::count_if(all.pairs, [&](const auto& one) { return one.second->context().device == context.device; }) >=
        facts.most_queues)
        return errno = ENOMEM, nullptr;
    auto* pair = new QueuePair;
    pair->shown.context = domain->context;
    pair->shown.qp_context = attributes->qp_context;
    pair->shown.pd = domain;
    pair->shown.send_cq = attributes->send_cq;
    pair->shown.recv_cq = attributes->recv_cq;
    pair->shown.srq = attributes->srq;
    pair->shown.qp_type = attributes->qp_type;
    pair->shown.qp_num = wire::next_number(*context.device);
    if (!pair->shown.qp_num) pair->shown.qp_num = all.next_number++;
    pair->shown.state = IBV_QPS_RESET;
    pair->limits = attributes->cap;
    ++pair->sends().users;
    ++pair->receives().users;
    ++pair->stock().users;
    all.pairs[pair->shown.qp_num] = pair;
    counted("queue pairs");
    return &pair->shown;
}

int ibv_modify_qp(ibv_qp* shown, ibv_qp_attr* attributes, int mask) {
    const Locked locked(world().lock);
    auto& pair = object<QueuePair>(shown);
    if (attributes->qp_state == IBV_QPS_ERR) return pair.break_with(IBV_WC_WR_FLUSH_ERR), 0;
    if (const int error = world().call("ibv_modify_qp", pair.context().device)) return error;
    if (mask & IBV_QP_QKEY) pair.attributes.qkey = attributes->qkey;
    if (mask & IBV_QP_DEST_QPN) pair.attributes.dest_qp_num = attributes->dest_qp_num;
    if (mask & IBV_QP_AV) {
        if (attributes->ah_attr.grh.sgid_index >= pair.context().device->gids.size()) return EINVAL;
        pair.attributes.ah_attr = attributes->ah_attr;
    }
    static constexpr ibv_qp_state kNext[] = {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS};
    if (pair.shown.state > IBV_QPS_RTR || kNext[pair.shown.state] != attributes->qp_state) return EINVAL;
    shown->state = attributes->qp_state;
    for (const auto& [number, other] : std::map(world().pairs)) other->advance();
    pair.serve_waiting();
    return 0;
}

int ibv_destroy_qp(ibv_qp* shown) {
    World& all = world();
    const Locked locked(all.lock);
    auto& pair = object<QueuePair>(shown);
    if (!pair.groups.empty()) misuse("a queue pair is destroyed while it is a member of %zu groups", pair.groups.size());
    --pair.sends().users;
    --pair.receives().users;
    --pair.stock().users;
    all.pairs.erase(shown->qp_num);
    // Drop the destroyed queue pair's unread events.
    std::erase_if(pair.context().events, [&](const ibv_async_event& event) {
        return event.event_type == IBV_EVENT_QP_FATAL && event.element.qp == shown;
    });
    ended(&pair, "queue pairs");
    return 0;
}

ibv_ah* ibv_create_ah(ibv_pd* domain, ibv_ah_attr* attributes) {
    World& all = world();
    const Locked locked(all.lock);
    const Context& context = context_of(domain->context);
    if (fails("ibv_create_ah", &context)) return nullptr;
    if (attributes->grh.sgid_index >= context.device->gids.size()) return errno = EINVAL, nullptr;
    Gid gid;
    std::memcpy(gid.data(), attributes->grh.dgid.raw, gid.size());
    if (all.unreachable.contains(gid)) return errno = ETIMEDOUT, nullptr;
    auto* handle = new AddressHandle;
    handle->shown.context = domain->context;
    handle->shown.pd = domain;
    handle->attributes = *attributes;
    counted("address handles");
    return &handle->shown;
}

int ibv_destroy_ah(ibv_ah* shown) {
    const Locked locked(world().lock);
    ended(&object<AddressHandle>(shown), "address handles");
    return 0;
}

int ibv_attach_mcast(ibv_qp* shown, const ibv_gid* group, uint16_t) {
    const Locked locked(world().lock);
    auto& pair = object<QueuePair>(shown);
    if (const int error = world().call("ibv_attach_mcast", pair.context().device)) return error;
    Gid gid;
    std::memcpy(gid.data(), group->raw, gid.size());
    pair.groups.push_back(gid);
    wire::join(*pair.context().device, gid);
    return 0;
}

int ibv_detach_mcast(ibv_qp* shown, const ibv_gid* group, uint16_t) {
    const Locked locked(world().lock);
    Gid gid;
    std::memcpy(gid.data(), group->raw, gid.size());
    return std::erase(object<QueuePair>(shown).groups, gid) ? 0 : EINVAL;
}

int ibv_get_async_event(ibv_context* shown, ibv_async_event* event) {
    if (!take_event(shown->async_fd)) return -1;
    const Locked locked(world().lock);
    Context& context = context_of(shown);
    if (context.events.empty()) return errno = EAGAIN, -1;
    *event = context.events.front();
    context.events.pop_front();
    ++context.unacknowledged;
    return 0;
}

// The event does not name its context: acknowledge one for the context that has an unacknowledged event.
void ibv_ack_async_event(ibv_async_event*) {
    const Locked locked(world().lock);
    for (Context* context : world().contexts) {
        if (context->unacknowledged == 0) continue;
        --context->unacknowledged;
        return;
    }
    misuse("an event is acknowledged twice");
}

const char* ibv_wc_status_str(ibv_wc_status status) {
    switch (status) {
        case IBV_WC_SUCCESS:
            return "success";
        case IBV_WC_RETRY_EXC_ERR:
            return "transport retry counter exceeded";
        case IBV_WC_REM_ACCESS_ERR:
            return "remote access error";
        case IBV_WC_REM_INV_REQ_ERR:
            return "remote invalid request error";
        case IBV_WC_LOC_LEN_ERR:
            return "local length error";
        case IBV_WC_WR_FLUSH_ERR:
            return "Work Request Flushed Error";
        default:
            return "another error";
    }
}

const char* ibv_event_type_str(ibv_event_type type) {
    return type == IBV_EVENT_QP_FATAL ? "local work queue catastrophic error" : "an event";
}
const char* ibv_port_state_str(ibv_port_state state) { return state == IBV_PORT_ACTIVE ? "PORT_ACTIVE" : "PORT_DOWN"; }

}  // extern "C"
