#include "plugins/verbs/datagrams.h"

#include <bit>
#include <cerrno>
#include <cstring>

#include "plugins/verbs/random.h"

namespace starling::verbs {

namespace {

// Extracts the sender's GID from the 40 bytes before a datagram. With RoCE over IPv4, their second half is an IPv4 header. Otherwise they
// are a GRH, which looks like an IPv6 header.
void read_sender(const std::byte* header, uint8_t (&gid)[16]) {
    constexpr std::byte kPlainIpv4{0x45};
    const bool ipv6 = header[0] >> 4 == std::byte{6} && header[20] != kPlainIpv4;
    if (ipv6 || header[20] != kPlainIpv4) {
        std::memcpy(gid, header + 8, sizeof gid);
        return;
    }
    std::memset(gid, 0, 10);
    gid[10] = gid[11] = 0xff;
    std::memcpy(gid + 12, header + 20 + 12, 4);
}

}  // namespace

// The device may support less inline data than requested, so smaller sizes are tried.
bool Datagrams::create() {
    for (const uint32_t inline_bytes : {kInline, 64u, 0u}) {
        core_.inline_bytes = inline_bytes;
        ibv_qp_init_attr attributes = core_.queue_attributes(IBV_QPT_UD, kDatagramDepth, nullptr);
        errno = 0;
        pair_ = ibv_create_qp(core_.domain, &attributes);
        if (pair_) {
            core_.counters.queue_memory += memory_ = core_.send_queue_memory(kDatagramDepth);
            return true;
        }
        if (errno != EINVAL && errno != ENOMEM) break;
    }
    const int error = errno ? errno : EIO;
    core_.problem.describe("%s cannot create a datagram queue (UD): %s", core_.facts.device,
                           error == EOPNOTSUPP ? "it does not support them; its IP network is used instead" : strerror(error));
    return false;
}

bool Datagrams::make() {
    if (!sends_.make(kDatagramDepth)) return core_.problem.describe("no memory for a datagram queue"), false;
    if (!create()) return false;
    core_.facts.inline_bytes = core_.inline_bytes;
    ibv_qp_attr state = {};
    state.qp_state = IBV_QPS_INIT;
    state.pkey_index = static_cast<uint16_t>(core_.options.pkey_index);
    state.port_num = core_.facts.port;
    state.qkey = kQueueKey;
    int error = ibv_modify_qp(pair_, &state, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
    state = {};
    state.qp_state = IBV_QPS_RTR;
    if (!error) error = ibv_modify_qp(pair_, &state, IBV_QP_STATE);
    state.qp_state = IBV_QPS_RTS;
    state.sq_psn = random_word() & 0xffffff;
    if (!error) error = ibv_modify_qp(pair_, &state, IBV_QP_STATE | IBV_QP_SQ_PSN);
    if (error) {
        core_.problem.describe("%s: the datagram queue can't be started: %s", core_.facts.device, strerror(error));
        drop();
        return false;
    }
    own_ = {};
    std::memcpy(own_.gid, core_.facts.gid, sizeof own_.gid);
    own_.queue = pair_->qp_num;
    own_.key = kQueueKey;
    own_.lid = core_.facts.lid;
    own_.mtu_log = static_cast<uint8_t>(std::bit_width(core_.facts.mtu) - 1);
    broken_ = false;
    return true;
}

void Datagrams::drop() {
    addresses_.drop();
    if (!pair_) return;
    sends_.end_all([&](const PostedWork& sent) { core_.free_buffer(sent.buffer); });
    ibv_destroy_qp(pair_);
    core_.counters.queue_memory -= memory_;
    pair_ = nullptr;
    own_ = {};
}

WorkStatus Datagrams::send(const VerbsAddress& to, const iovec* parts, int count) {
    if (!pair_ || broken_ || core_.device_lost) return WorkStatus::broken;
    const uint32_t bytes = total_of(parts, count);
    if (bytes > core_.facts.mtu) return WorkStatus::too_long;
    if (sends_.full()) {
        refused_busy_ = true;
        return WorkStatus::busy;
    }
    ibv_send_wr work = {};
    work.opcode = IBV_WR_SEND;
    work.wr.ud = {addresses_.find(to.gid, to.lid, sends_.next()), to.queue, to.key};
    if (!work.wr.ud.ah) return WorkStatus::broken;
    Laid laid;
    if (!core_.lay(parts, count, bytes, laid)) {
        refused_busy_ = true;
        return WorkStatus::busy;
    }
    work.send_flags = laid.flags;
    return post(work, laid.place, laid.sent);
}

WorkStatus Datagrams::post(ibv_send_wr& work, const ibv_sge& place, const PostedWork& sent) {
    const uint32_t position = sends_.next();
    if (sends_.push(sent)) work.send_flags |= IBV_SEND_SIGNALED;
    work.wr_id = work_id(Work::datagram, position);
    ibv_sge part = place;
    work.sg_list = &part;
    work.num_sge = part.length ? 1 : 0;
    ibv_send_wr* bad = nullptr;
    if (const int error = ibv_post_send(pair_, &work, &bad)) {
        sends_.remove_from(position, [&](const PostedWork& one) { core_.free_buffer(one.buffer); });
        broke(strerror(error));
        return WorkStatus::broken;
    }
    ++core_.counters.datagrams_sent;
    return WorkStatus::done;
}

// A failed datagram may have stopped the queue; the port then creates another.
void Datagrams::ended(const ibv_wc& completion) {
    sends_.end(number_of(completion.wr_id), [&](const PostedWork& sent, bool) { core_.free_buffer(sent.buffer); });
    addresses_.ended(number_of(completion.wr_id));
    if (completion.status != IBV_WC_SUCCESS) broke(ibv_wc_status_str(completion.status));
    if (refused_busy_) report_room();
}

void Datagrams::broke(const char* why) {
    if (broken_) return;
    broken_ = true;
    core_.problem.describe("the datagram queue of %s broke: %s", core_.facts.device, why);
}

void Datagrams::report_room() {
    if (!refused_busy_) return;
    refused_busy_ = false;
    core_.report({.kind = VerbsEvent::VerbsEventKind::room});
}

void Datagrams::received(const ibv_wc& completion, uint32_t buffer) {
    if (completion.status != IBV_WC_SUCCESS || completion.byte_len < kHeader) {
        core_.receive.return_buffer(buffer);
        if (completion.status != IBV_WC_SUCCESS) broke(ibv_wc_status_str(completion.status));
        return;
    }
    ++core_.counters.datagrams_received;
    std::byte* start = core_.receive.at(buffer);
    VerbsEvent event = {.kind = VerbsEvent::VerbsEventKind::datagram,
                        .bytes = completion.byte_len - kHeader,
                        .data = start + kHeader,
                        .source_queue = completion.src_qp,
                        .buffer = start};
    if (completion.wc_flags & IBV_WC_GRH) read_sender(start, event.gid);
    core_.report(event);
}

}  // namespace starling::verbs
