#include "plugins/verbs/core.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "plugins/verbs/device_list.h"

namespace starling::verbs {

namespace {

constexpr uint32_t kReceiveBuffers = 256;
constexpr uint32_t kSendBuffers = 64;
constexpr uint32_t kFrame = 4096;
constexpr uint32_t kFirstConnections = 16;  ///< connections for which the completion queue has room before it has to grow

// Entry sizes of mlx5; other devices are similar.
constexpr uint64_t kCompletionBytes = 64, kReceiveBytes = 32;
constexpr uint32_t kWorkBytes = 64;  ///< bytes of a work entry, without inline data

constexpr uint32_t round_up(uint32_t number, uint32_t to) { return (number + to - 1) / to * to; }

bool refuse_blocking(int descriptor) { return fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK) == 0; }

}  // namespace

bool VerbsCore::make(const PortFacts& which, const DeviceOptions& wanted) {
    facts = which;
    options = wanted;
    const char* device = facts.device;
    char sentence[300];
    context = open_device(device, sentence, sizeof sentence);
    if (!context) return problem.describe("%s: %s", device, sentence), false;
    describe_port(context, which.port, options, facts);
    if (facts.why_not[0]) return problem.describe("%s:%u: %s", device, facts.port, facts.why_not), false;
    ibv_device_attr limits = {};
    if (const int error = ibv_query_device(context, &limits))
        return problem.describe("cannot query the attributes of %s: %s", device, strerror(error)), false;
    reads = static_cast<uint32_t>(std::clamp(std::min(limits.max_qp_rd_atom, limits.max_qp_init_rd_atom), 1, 16));
    frame_bytes = options.frame_bytes ? options.frame_bytes : kFrame;
    const uint32_t buffer = round_up(std::max(frame_bytes, facts.mtu + kHeader), 64);
    uint32_t receives = options.receive_buffers ? options.receive_buffers : kReceiveBuffers;
    receives = std::min(receives, static_cast<uint32_t>(limits.max_srq_wr));
    const uint32_t sends = options.send_buffers ? options.send_buffers : kSendBuffers;

    if (!refuse_blocking(context->async_fd))
        return problem.describe("cannot read the events of %s: %s", device, strerror(errno)), false;
    errno = 0;
    domain = ibv_alloc_pd(context);
    if (!domain) return problem.describe("%s has no protection domain left: %s", device, strerror(errno)), false;
    channel = ibv_create_comp_channel(context);
    if (!channel || !refuse_blocking(channel->fd))
        return problem.describe("%s cannot create a completion channel: %s", device, strerror(errno)), false;
    completions_needed = receives + kDatagramDepth;
    const uint32_t entries = completions_needed + kFirstConnections * kConnectionDepth;
    completions = ibv_create_cq(context, static_cast<int>(std::min<uint32_t>(entries, limits.max_cqe)), nullptr, channel, 0);
    if (!completions) return problem.describe_memory(device, uint64_t{entries} * 64, errno ? errno : EIO), false;
    reserve_events();
    if (!receive.make(domain, receives, buffer, problem)) return false;
    if (!send.make(domain, sends, std::max(frame_bytes, facts.mtu), problem)) return false;
    counters.queue_bytes = receive.total() + send.total();
    counters.registered_bytes = counters.queue_bytes;
    counters.queue_memory = static_cast<uint64_t>(completions->cqe) * kCompletionBytes + receives * kReceiveBytes;
    return true;
}

void VerbsCore::drop() {
    send.drop();
    receive.drop();
    if (completions) ibv_destroy_cq(completions);
    if (channel) ibv_destroy_comp_channel(channel);
    if (domain) ibv_dealloc_pd(domain);
    if (context) ibv_close_device(context);
    completions = nullptr;
    channel = nullptr;
    domain = nullptr;
    context = nullptr;
}

bool VerbsCore::reserve_completions(uint32_t more) {
    const uint32_t needed = completions_needed + more;
    if (const int before = completions->cqe; needed > static_cast<uint32_t>(before)) {
        const int error =
            ibv_resize_cq(completions, static_cast<int>(std::max(needed, 2 * static_cast<uint32_t>(completions->cqe))));
        if (error && ibv_resize_cq(completions, static_cast<int>(needed)) != 0) {
            problem.describe(
                "%s cannot create a completion queue of more than %d entries, which is full with %zu connections: %s",
                facts.device, completions->cqe, connections.size(), strerror(error));
            return false;
        }
        counters.queue_memory += static_cast<uint64_t>(completions->cqe - before) * kCompletionBytes;
        reserve_events();
    }
    completions_needed = needed;
    return true;
}

// Reserves space for all events that the completion queue can hold, so that storing an event never fails. Untouched pages take no memory.
void VerbsCore::reserve_events() { stored.reserve(2 * static_cast<size_t>(completions->cqe) + 64); }

uint64_t VerbsCore::send_queue_memory(uint32_t depth) const {
    return uint64_t{depth} * (sizeof(PostedWork) + round_up(kWorkBytes + inline_bytes, kWorkBytes));
}

ibv_qp_init_attr VerbsCore::queue_attributes(ibv_qp_type type, uint32_t depth, void* owner) const {
    ibv_qp_init_attr attributes = {};
    attributes.qp_context = owner;
    attributes.send_cq = attributes.recv_cq = completions;
    attributes.srq = receive.queue();
    attributes.cap.max_send_wr = depth;
    attributes.cap.max_send_sge = 1;
    attributes.cap.max_inline_data = inline_bytes;
    attributes.qp_type = type;
    return attributes;
}

void VerbsCore::address_to(ibv_ah_attr& to, const uint8_t* gid, uint16_t lid) const {
    to = {};
    to.is_global = 1;
    std::memcpy(to.grh.dgid.raw, gid, sizeof to.grh.dgid.raw);
    to.grh.sgid_index = facts.gid_index;
    to.grh.hop_limit = 64;
    to.grh.traffic_class = static_cast<uint8_t>(options.traffic_class);
    to.dlid = lid;
    to.sl = static_cast<uint8_t>(options.service_level);
    to.port_num = facts.port;
}

void VerbsCore::report(const VerbsEvent& event) {
    if (out != out_end && stored_first == stored.size())
        *out++ = event;
    else
        stored.push_back(event);
}

void VerbsCore::report_stored() {
    while (out != out_end && stored_first < stored.size()) *out++ = stored[stored_first++];
    if (stored_first < stored.size()) return;
    stored.clear();
    stored_first = 0;
}

void VerbsCore::free_buffer(uint32_t index) {
    if (index == kNoBuffer) return;
    send.put(index);
    freed = true;
}

uint32_t total_of(const iovec* parts, int count) {
    uint64_t total = 0;
    for (int i = 0; i < count; ++i) total += parts[i].iov_len;
    return total > ~0u ? ~0u : static_cast<uint32_t>(total);
}

bool VerbsCore::lay(const iovec* parts, int count, uint32_t bytes, Laid& out) {
    std::byte* to = out.small;
    out.place = {0, bytes, 0};
    if (bytes <= inline_bytes) {
        out.flags = IBV_SEND_INLINE;
    } else {
        if (!send.allocate(out.sent.buffer)) {
            starving = true;
            return false;
        }
        to = send.at(out.sent.buffer);
        out.place.lkey = send.key();
    }
    out.place.addr = reinterpret_cast<uint64_t>(to);
    for (int i = 0; i < count; ++i) {
        if (parts[i].iov_len) std::memcpy(to, parts[i].iov_base, parts[i].iov_len);
        to += parts[i].iov_len;
    }
    return true;
}

}  // namespace starling::verbs
