#include "plugins/verbs/connection.h"

#include <arpa/inet.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "plugins/verbs/device_list.h"
#include "plugins/verbs/port.h"
#include "plugins/verbs/random.h"

namespace starling::verbs {

namespace {

// Transmissions: 7 attempts, 268 ms apart, so after 2 s the peer is known to be unreachable. Not 8, because Soft-RoCE takes a retry count
// of 7 as unlimited.
constexpr uint8_t kTimeout = 16;
constexpr uint8_t kTries = 6;
// Retries when the peer has no receive buffer: unlimited, 0.6 ms apart, because a process that computes does not free its buffers for an
// arbitrary time.
constexpr uint8_t kNotReadyTries = 7;
constexpr uint8_t kNotReadyTimer = 12;

constexpr int kOthersMay = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

const char* remedy_of(ibv_wc_status status) {
    switch (status) {
        case IBV_WC_RETRY_EXC_ERR:
            return " (no answer: the other process, its link or the network between has failed)";
        case IBV_WC_REM_ACCESS_ERR:
            return " (the peer's memory is not registered, or no longer registered)";
        case IBV_WC_REM_INV_REQ_ERR:
            return " (the message is longer than the peer's receive buffers)";
        default:
            return "";
    }
}

}  // namespace

RcQueue* RcQueue::make(VerbsCore& core, void* user) {
    std::unique_ptr<RcQueue> made(new RcQueue(core, user));
    return made->start() ? made.release() : nullptr;
}

bool RcQueue::start() {
    if (core_.device_lost) return core_.problem.describe("%s has been removed", core_.facts.device), false;
    if (!sends_.make(kConnectionDepth)) return core_.problem.describe("no memory for a connection"), false;
    reserved_ = core_.reserve_completions(kConnectionDepth);
    if (!reserved_) return false;
    ibv_qp_init_attr attributes = core_.queue_attributes(IBV_QPT_RC, kConnectionDepth, this);
    errno = 0;
    pair_ = ibv_create_qp(core_.domain, &attributes);
    if (!pair_) {
        core_.problem.describe("%s cannot create a queue pair in addition to %zu others (its limit is %u): %s",
                               core_.facts.device, core_.connections.size(), core_.facts.most_queues,
                               strerror(errno ? errno : EIO));
        return false;
    }
    core_.counters.queue_memory += memory_ = core_.send_queue_memory(kConnectionDepth);
    ibv_qp_attr state = {};
    state.qp_state = IBV_QPS_INIT;
    state.pkey_index = static_cast<uint16_t>(core_.options.pkey_index);
    state.port_num = core_.facts.port;
    state.qp_access_flags = kOthersMay & ~IBV_ACCESS_LOCAL_WRITE;
    if (!change(state, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, "initialized")) return false;
    std::memcpy(own_.gid, core_.facts.gid, sizeof own_.gid);
    own_.queue = pair_->qp_num;
    own_.first = random_word() & 0xffffff;
    own_.lid = core_.facts.lid;
    own_.mtu_log = static_cast<uint8_t>(std::bit_width(core_.facts.mtu) - 1);
    own_.reads = static_cast<uint8_t>(core_.reads);
    core_.connections.emplace(own_.queue, this);
    ++core_.counters.queues;
    return true;
}

void RcQueue::end_pair() {
    if (!pair_) return;
    if (core_.chain.owner == this) core_.chain.owner = nullptr;
    ibv_destroy_qp(pair_);
    core_.counters.queue_memory -= memory_;
    pair_ = nullptr;
    sends_.end_all([&](const PostedWork& sent) { core_.free_buffer(sent.buffer); });
}

RcQueue::~RcQueue() {
    end_pair();
    if (reserved_) core_.release_completions(kConnectionDepth);
}

bool RcQueue::change(ibv_qp_attr& attributes, int mask, const char* state) {
    const int error = ibv_modify_qp(pair_, &attributes, mask);
    if (error) core_.problem.describe("%s: a connection can't be %s: %s", core_.facts.device, state, strerror(error));
    return error == 0;
}

bool RcQueue::connect(const QueueAddress& peer) {
    if (core_.device_lost || broken_)
        return core_.problem.describe("%s: the connection's queue is in error", core_.facts.device), false;
    std::memcpy(peer_gid_, peer.gid, sizeof peer_gid_);
    ibv_qp_attr receive = {};
    receive.qp_state = IBV_QPS_RTR;
    receive.path_mtu = mtu_of_log(std::min(peer.mtu_log, own_.mtu_log));
    receive.dest_qp_num = peer.queue;
    receive.rq_psn = peer.first;
    receive.max_dest_rd_atomic = own_.reads;
    receive.min_rnr_timer = kNotReadyTimer;
    core_.address_to(receive.ah_attr, peer.gid, peer.lid);
    if (!change(receive,
                IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                    IBV_QP_MIN_RNR_TIMER,
                "made ready to receive"))
        return false;
    ibv_qp_attr send = {};
    send.qp_state = IBV_QPS_RTS;
    send.timeout = kTimeout;
    send.retry_cnt = kTries;
    send.rnr_retry = kNotReadyTries;
    send.sq_psn = own_.first;
    send.max_rd_atomic = std::min(peer.reads, own_.reads);
    connected_ = change(
        send, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
        "made ready to send");
    return connected_;
}

bool RcQueue::ready(WorkStatus& status) {
    if (broken_ || closed_ || !connected_ || core_.device_lost) return status = WorkStatus::broken, false;
    if (!sends_.full()) return true;
    refused_busy_ = true;
    return status = WorkStatus::busy, false;
}

WorkStatus RcQueue::send(const iovec* parts, int count) {
    WorkStatus status;
    if (!ready(status)) return status;
    const uint32_t bytes = total_of(parts, count);
    if (bytes > core_.frame_bytes) return WorkStatus::too_long;
    Laid laid;
    if (!core_.lay(parts, count, bytes, laid)) {
        refused_busy_ = true;
        return WorkStatus::busy;
    }
    ibv_send_wr work = {};
    work.opcode = IBV_WR_SEND;
    work.send_flags = laid.flags;
    status = post(work, laid.place, laid.sent, false);
    if (status == WorkStatus::done) ++core_.counters.frames_sent;
    return status;
}

ibv_send_wr RcQueue::transfer(const Transfer& what, ibv_wr_opcode opcode) const {
    ibv_send_wr work = {};
    work.opcode = opcode;
    const bool writes = opcode == IBV_WR_RDMA_WRITE || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
    if (writes && what.bytes <= core_.inline_bytes) work.send_flags = IBV_SEND_INLINE;
    work.wr.rdma.remote_addr = what.address;
    work.wr.rdma.rkey = what.remote;
    return work;
}

namespace {

ibv_sge place_of(const Queue::Transfer& what) { return {reinterpret_cast<uint64_t>(what.memory), what.bytes, what.local}; }
PostedWork sent_of(const Queue::Transfer& what) { return {what.token, kNoBuffer, true, what.quiet}; }

}  // namespace

WorkStatus RcQueue::write(const Transfer& what) {
    WorkStatus status;
    if (!ready(status)) return status;
    ibv_send_wr work = transfer(what, IBV_WR_RDMA_WRITE);
    return post(work, place_of(what), sent_of(what), what.more);
}

WorkStatus RcQueue::write_with_note(const Transfer& what, uint32_t word) {
    WorkStatus status;
    if (!ready(status)) return status;
    ibv_send_wr work = transfer(what, IBV_WR_RDMA_WRITE_WITH_IMM);
    work.imm_data = htonl(word);
    return post(work, place_of(what), sent_of(what), what.more);
}

WorkStatus RcQueue::read(const Transfer& what) {
    WorkStatus status;
    if (!ready(status)) return status;
    ibv_send_wr work = transfer(what, IBV_WR_RDMA_READ);
    return post(work, place_of(what), sent_of(what), what.more);
}

WorkStatus RcQueue::fetch_add(const Transfer& what, uint64_t operand) {
    WorkStatus status;
    if (!ready(status)) return status;
    ibv_send_wr work = {};
    work.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
    work.wr.atomic = {what.address, operand, 0, what.remote};
    return post(work, place_of(what), sent_of(what), what.more);
}

WorkStatus RcQueue::compare_swap(const Transfer& what, uint64_t compare, uint64_t operand) {
    WorkStatus status;
    if (!ready(status)) return status;
    ibv_send_wr work = {};
    work.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
    work.wr.atomic = {what.address, compare, operand, what.remote};
    return post(work, place_of(what), sent_of(what), what.more);
}

WorkStatus RcQueue::post(ibv_send_wr& work, const ibv_sge& place, const PostedWork& sent, bool more) {
    Chain& chain = core_.chain;
    if (chain.owner && chain.owner != this) chain.owner->post_chain(false);
    if (!chain.owner) {
        chain.owner = this;
        chain.count = 0;
        chain.first = sends_.next();
    }
    const uint32_t at = chain.count++;
    const uint32_t position = sends_.next();
    if (sends_.push(sent)) work.send_flags |= IBV_SEND_SIGNALED;
    work.wr_id = work_id(Work::connection, position);
    chain.places[at] = place;
    if (work.send_flags & IBV_SEND_INLINE) {
        if (place.length) std::memcpy(chain.small[at], reinterpret_cast<const void*>(place.addr), place.length);
        chain.places[at].addr = reinterpret_cast<uint64_t>(chain.small[at]);
    }
    work.sg_list = &chain.places[at];
    work.num_sge = place.length ? 1 : 0;
    chain.work[at] = work;
    if (at > 0) chain.work[at - 1].next = &chain.work[at];
    if (sent.transfer) ++core_.counters.transfers;
    if (more && chain.count < Chain::kTogether && !sends_.full()) return WorkStatus::done;
    return post_chain(true) ? WorkStatus::done : WorkStatus::broken;
}

bool RcQueue::post_chain(bool last_fails_itself) {
    Chain& chain = core_.chain;
    if (chain.owner != this) return true;
    ibv_send_wr* bad = nullptr;
    const int error = ibv_post_send(pair_, chain.work, &bad);
    const uint32_t taken = error && bad ? static_cast<uint32_t>(bad - chain.work) : 0;
    chain.owner = nullptr;
    if (!error) return true;
    bool silent = last_fails_itself;
    sends_.remove_from(chain.first + taken, [&](const PostedWork& sent) {
        core_.free_buffer(sent.buffer);
        if (std::exchange(silent, false) || !sent.transfer) return;
        report({.kind = VerbsEvent::VerbsEventKind::done, .status = WorkStatus::broken, .user = user_, .token = sent.token});
    });
    broke(strerror(error));
    return false;
}

void RcQueue::ended(const ibv_wc& completion) {
    const bool good = completion.status == IBV_WC_SUCCESS;
    if (!good && completion.status != IBV_WC_WR_FLUSH_ERR) {
        char why[200];
        std::snprintf(why, sizeof why, "%s%s", ibv_wc_status_str(completion.status), remedy_of(completion.status));
        broke(why);
    }
    sends_.end(number_of(completion.wr_id), [&](const PostedWork& sent, bool last) {
        core_.free_buffer(sent.buffer);
        const WorkStatus status = good || !last ? WorkStatus::done : WorkStatus::broken;
        if (!sent.transfer || (sent.quiet && status == WorkStatus::done)) return;
        report({.kind = VerbsEvent::VerbsEventKind::done, .status = status, .user = user_, .token = sent.token});
    });
    if (!good) broke("pending work was not completed");
    if (refused_busy_) report_room();
    if (closed_) linger();
}

void RcQueue::report_room() {
    if (!refused_busy_) return;
    refused_busy_ = false;
    report({.kind = VerbsEvent::VerbsEventKind::room, .user = user_});
}

void RcQueue::received(const ibv_wc& completion, uint32_t buffer) {
    if (completion.status != IBV_WC_SUCCESS) {
        core_.receive.return_buffer(buffer);
        broke(ibv_wc_status_str(completion.status));
        return;
    }
    if (completion.opcode == IBV_WC_RECV_RDMA_WITH_IMM) {
        core_.receive.return_buffer(buffer);
        report({.kind = VerbsEvent::VerbsEventKind::note, .user = user_, .word = ntohl(completion.imm_data)});
        return;
    }
    if (closed_) return core_.receive.return_buffer(buffer);
    ++core_.counters.frames_received;
    std::byte* data = core_.receive.at(buffer);
    report(
        {.kind = VerbsEvent::VerbsEventKind::frame, .bytes = completion.byte_len, .data = data, .user = user_, .buffer = data});
}

void RcQueue::broke(const char* why) {
    if (broken_) return;
    broken_ = true;
    ibv_qp_attr state = {};
    state.qp_state = IBV_QPS_ERR;
    if (pair_) ibv_modify_qp(pair_, &state, IBV_QP_STATE);
    char peer[INET6_ADDRSTRLEN] = "?";
    inet_ntop(AF_INET6, peer_gid_, peer, sizeof peer);
    if (!closed_) core_.problem.describe("the connection of %s to %s broke: %s", core_.facts.device, peer, why);
    report({.kind = VerbsEvent::VerbsEventKind::broken, .status = WorkStatus::broken, .user = user_});
}

void RcQueue::lost() {
    broke("the device has been removed");
    if (core_.chain.owner == this) core_.chain.owner = nullptr;
    sends_.end_all([&](const PostedWork& sent) {
        core_.free_buffer(sent.buffer);
        if (sent.transfer)
            report(
                {.kind = VerbsEvent::VerbsEventKind::done, .status = WorkStatus::broken, .user = user_, .token = sent.token});
    });
    if (closed_) linger();
}

void RcQueue::close(bool linger_first) {
    if (core_.chain.owner == this) post_chain(false);
    if (linger_first && connected_ && !broken_ && !core_.device_lost && !sends_.empty()) {
        forget();
        closed_ = true;
        return linger();
    }
    forget();
    sends_.end_all([&](const PostedWork& sent) {
        core_.free_buffer(sent.buffer);
        if (sent.transfer)
            core_.report({.kind = VerbsEvent::VerbsEventKind::done, .status = WorkStatus::broken, .token = sent.token});
    });
    closed_ = true;
    core_.port->end_connection(this);
}

// Marks a closed connection as finished when its work is complete. If its last request is unsignaled, posts a final write of no bytes,
// whose completion stands for all.
void RcQueue::linger() {
    if (finished_) return;
    if (!broken_ && !sends_.empty() && sends_.ends_unsignaled() && !sends_.full()) {
        ibv_send_wr work = {};
        work.opcode = IBV_WR_RDMA_WRITE;
        post(work, {}, {0, kNoBuffer, true, false}, false);
    }
    if (!broken_ && !sends_.empty()) return;
    finished_ = true;
    core_.finished.push_back(this);
}

// Removes this connection's events that were not reported yet.
void RcQueue::forget() {
    for (size_t i = core_.stored_first; i < core_.stored.size(); ++i) {
        VerbsEvent& event = core_.stored[i];
        if (!user_ || event.user != user_) continue;
        if (event.kind == VerbsEvent::VerbsEventKind::done) {
            event.user = nullptr;
            continue;
        }
        if (event.buffer) core_.port->return_buffer(event);
        event = {.kind = VerbsEvent::VerbsEventKind::room, .user = nullptr};
    }
}

}  // namespace starling::verbs
