// Queue pairs: processing of posted work and of arriving packets.
#include <arpa/inet.h>

#include <cerrno>
#include <cstring>

#include "fake/world.h"

namespace fake {

Context& QueuePair::context() const { return context_of(shown.context); }
CompletionQueue& QueuePair::sends() const { return object<CompletionQueue>(shown.send_cq); }
CompletionQueue& QueuePair::receives() const { return object<CompletionQueue>(shown.recv_cq); }
ReceiveQueue& QueuePair::stock() const { return object<ReceiveQueue>(shown.srq); }

Gid QueuePair::gid() const {
    const Device& device = *context().device;
    const size_t index = shown.qp_type == IBV_QPT_RC ? attributes.ah_attr.grh.sgid_index : 0;
    return device.gids.at(index < device.gids.size() ? index : 0).second;
}

namespace {

Packet::Kind kind_of(ibv_wr_opcode opcode) {
    switch (opcode) {
        case IBV_WR_SEND:
            return Packet::send;
        case IBV_WR_RDMA_WRITE:
            return Packet::write;
        case IBV_WR_RDMA_WRITE_WITH_IMM:
            return Packet::write_note;
        case IBV_WR_RDMA_READ:
            return Packet::read;
        case IBV_WR_ATOMIC_FETCH_AND_ADD:
            return Packet::fetch_add;
        case IBV_WR_ATOMIC_CMP_AND_SWP:
            return Packet::compare_swap;
        default:
            misuse("a work request has the unsupported opcode %d", opcode);
    }
}

bool reads(Packet::Kind kind) { return kind == Packet::read || kind == Packet::fetch_add || kind == Packet::compare_swap; }

}  // namespace

// Posts a send request, as ibv_post_send does. Returns an errno, or 0.
int QueuePair::post(const ibv_send_wr& work) {
    if (shown.state == IBV_QPS_ERR) {
        works.push_back({work.wr_id, ++posted, true, 0, {}, {}});
        break_with(IBV_WC_WR_FLUSH_ERR);
        return 0;
    }
    if (shown.state != IBV_QPS_RTS) return EINVAL;
    if (posted - freed >= limits.max_send_wr || work.num_sge > static_cast<int>(limits.max_send_sge)) return ENOMEM;
    Work as;
    as.id = work.wr_id;
    as.number = ++posted;
    as.told = work.send_flags & IBV_SEND_SIGNALED;
    as.serial = as.packet.header.serial = ++serial;
    Packet& packet = as.packet;
    packet.header.kind = kind_of(work.opcode);
    packet.header.from = gid();
    packet.header.from_queue = shown.qp_num;
    for (int i = 0; i < work.num_sge; ++i) {
        const ibv_sge& part = work.sg_list[i];
        packet.header.length += part.length;
        const std::byte* from = reinterpret_cast<std::byte*>(part.addr);
        if (work.send_flags & IBV_SEND_INLINE) {
            if (packet.header.length > limits.max_inline_data) return EINVAL;
        } else {
            from = world().memory(part.addr, part.length, part.lkey, reads(packet.header.kind) ? IBV_ACCESS_LOCAL_WRITE : 0);
            if (!from) misuse("a part of %u bytes is not in registered memory", part.length);
        }
        if (reads(packet.header.kind))
            as.answer = part;
        else
            packet.data.insert(packet.data.end(), from, from + part.length);
    }
    if (shown.qp_type == IBV_QPT_UD) return post_datagram(work, as), 0;
    packet.header.to_queue = attributes.dest_qp_num;
    std::memcpy(packet.header.to.data(), attributes.ah_attr.grh.dgid.raw, 16);
    packet.header.word = work.imm_data;
    packet.header.address = work.wr.rdma.remote_addr;
    packet.header.key = work.wr.rdma.rkey;
    if (packet.header.kind == Packet::fetch_add || packet.header.kind == Packet::compare_swap) {
        packet.header.address = work.wr.atomic.remote_addr;
        packet.header.key = work.wr.atomic.rkey;
        packet.header.compare = work.wr.atomic.compare_add;
        packet.header.operand = work.wr.atomic.swap;
    }
    works.push_back(std::move(as));
    return 0;
}

void QueuePair::post_datagram(const ibv_send_wr& work, const Work& as) {
    Packet packet = as.packet;
    if (packet.header.kind != Packet::send) misuse("a datagram queue pair cannot read or write memory");
    packet.header.kind = Packet::datagram;
    const AddressHandle& handle = object<AddressHandle>(work.wr.ud.ah);
    std::memcpy(packet.header.to.data(), handle.attributes.grh.dgid.raw, 16);
    packet.header.to_queue = work.wr.ud.remote_qpn;
    packet.header.key = work.wr.ud.remote_qkey;
    const bool fits = packet.header.length <= context().device->facts.mtu;
    if (fits) world().carry(std::move(packet));
    end(as, fits ? IBV_WC_SUCCESS : IBV_WC_LOC_LEN_ERR);
    if (!fits) shown.state = IBV_QPS_ERR;
}

void QueuePair::end(const Work& work, ibv_wc_status status) {
    if (!work.told && status == IBV_WC_SUCCESS) return;
    ibv_wc completion = {};
    completion.wr_id = work.id;
    completion.status = status;
    completion.qp_num = shown.qp_num;
    world().tell(sends(), completion, work.number, true);
}

// Sends queued work as long as the peer is reachable.
void QueuePair::advance() {
    while (shown.state == IBV_QPS_RTS && sent < works.size()) {
        ++sent;
        if (world().carry(works[sent - 1].packet)) continue;
        --sent;
        return;
    }
}

void QueuePair::break_with(ibv_wc_status status) {
    shown.state = IBV_QPS_ERR;
    waiting.clear();
    while (!works.empty()) {
        const Work work = std::move(works.front());
        works.pop_front();
        end(work, status);
        status = IBV_WC_WR_FLUSH_ERR;
    }
    sent = 0;
}

void QueuePair::receive(Packet&& packet) {
    if (packet.header.kind == Packet::reply) return answered(packet);
    if (packet.header.kind == Packet::datagram) {
        const bool ready = shown.state == IBV_QPS_RTS || shown.state == IBV_QPS_RTR;
        if (!ready || packet.header.key != attributes.qkey || !context().device->up) return;
        if (!place(packet, IBV_WC_RECV)) ++world().counts.without_buffer;
        return;
    }
    waiting.push_back(std::move(packet));
    serve_waiting();
}

void QueuePair::serve_waiting() {
    while (!waiting.empty() && (shown.state == IBV_QPS_RTR || shown.state == IBV_QPS_RTS)) {
        const Packet packet = waiting.front();
        if (!serve(packet)) {
            ++world().counts.not_ready;
            return;
        }
        if (!waiting.empty()) waiting.pop_front();
    }
}

// Carries out a request of the peer and answers it. Returns false if it found no receive buffer.
bool QueuePair::serve(const Packet& packet) {
    const Packet::Header& header = packet.header;
    if (header.kind == Packet::send) {
        if (!place(packet, IBV_WC_RECV)) return false;
        return shown.state == IBV_QPS_ERR || (answer(packet, IBV_WC_SUCCESS), true);
    }
    const bool changes = header.kind == Packet::fetch_add || header.kind == Packet::compare_swap;
    const int access = header.kind == Packet::read ? IBV_ACCESS_REMOTE_READ
                       : changes                   ? IBV_ACCESS_REMOTE_ATOMIC
                                                   : IBV_ACCESS_REMOTE_WRITE;
    std::byte* memory = header.length ? world().memory(header.address, header.length, header.key, access) : nullptr;
    if (header.length && !memory) return answer(packet, IBV_WC_REM_ACCESS_ERR), break_with(IBV_WC_WR_FLUSH_ERR), true;
    if (header.kind == Packet::write_note && stock().places.empty()) return false;
    std::vector<std::byte> data;
    if (header.kind == Packet::read || changes) data.assign(memory, memory + header.length);
    if (header.kind == Packet::write || header.kind == Packet::write_note)
        if (header.length) std::memcpy(memory, packet.data.data(), header.length);
    if (changes) {
        if (header.length != 8 || header.address % 8)
            return answer(packet, IBV_WC_REM_INV_REQ_ERR), break_with(IBV_WC_WR_FLUSH_ERR), true;
        auto* word = reinterpret_cast<uint64_t*>(memory);
        if (header.kind == Packet::fetch_add) __atomic_fetch_add(word, header.compare, __ATOMIC_SEQ_CST);
        uint64_t expected = header.compare;
        if (header.kind == Packet::compare_swap)
            __atomic_compare_exchange_n(word, &expected, header.operand, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    }
    if (header.kind == Packet::write_note) place(packet, IBV_WC_RECV_RDMA_WITH_IMM);
    answer(packet, IBV_WC_SUCCESS, std::move(data));
    return true;
}

// Takes a receive buffer and completes it; returns false if there is none.
bool QueuePair::place(const Packet& packet, ibv_wc_opcode opcode) {
    ReceiveQueue& queue = stock();
    if (queue.places.empty()) return false;
    const ReceiveQueue::Place to = queue.places.front();
    queue.places.pop_front();
    const Packet::Header& header = packet.header;
    ibv_wc completion = {};
    completion.wr_id = to.id;
    completion.opcode = opcode;
    completion.qp_num = shown.qp_num;
    completion.src_qp = header.from_queue;
    completion.imm_data = header.word;
    completion.byte_len = header.length;
    if (opcode == IBV_WC_RECV_RDMA_WITH_IMM)
        completion.wc_flags = IBV_WC_WITH_IMM;
    else {
        const uint32_t before = shown.qp_type == IBV_QPT_UD ? 40 : 0;
        completion.byte_len += before;
        completion.wc_flags = before ? IBV_WC_GRH : 0;
        std::byte* memory = world().memory(to.where.addr, to.where.length, to.where.lkey, IBV_ACCESS_LOCAL_WRITE);
        if (!memory) misuse("a receive buffer is not in registered memory");
        if (completion.byte_len > to.where.length) {
            completion.status = IBV_WC_LOC_LEN_ERR;
            world().tell(receives(), completion, 0, false);
            answer(packet, IBV_WC_REM_INV_REQ_ERR);
            break_with(IBV_WC_WR_FLUSH_ERR);
            return true;
        }
        if (before) {
            std::memset(memory, 0xee, 40);
            static constexpr uint8_t kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
            if (std::memcmp(header.from.data(), kMapped, 12) == 0) {
                memory[20] = std::byte{0x45};
                std::memcpy(memory + 32, header.from.data() + 12, 4);
            } else {
                memory[0] = std::byte{0x60};
                std::memcpy(memory + 8, header.from.data(), 16);
            }
        }
        if (!packet.data.empty()) std::memcpy(memory + before, packet.data.data(), packet.data.size());
    }
    world().tell(receives(), completion, 0, false);
    return true;
}

void QueuePair::answer(const Packet& request, ibv_wc_status status, std::vector<std::byte> data) {
    Packet packet;
    packet.header.kind = Packet::reply;
    packet.header.status = static_cast<uint8_t>(status);
    packet.header.from = request.header.to;
    packet.header.to = request.header.from;
    packet.header.from_queue = shown.qp_num;
    packet.header.to_queue = request.header.from_queue;
    packet.header.serial = request.header.serial;
    packet.header.length = static_cast<uint32_t>(data.size());
    packet.data = std::move(data);
    world().carry(std::move(packet));
}

void QueuePair::answered(const Packet& packet) {
    if (sent == 0 || works.front().serial != packet.header.serial) return;
    const auto status = static_cast<ibv_wc_status>(packet.header.status);
    if (status != IBV_WC_SUCCESS) return break_with(status);
    const Work work = std::move(works.front());
    works.pop_front();
    --sent;
    if (!packet.data.empty()) {
        std::byte* memory = world().memory(work.answer.addr, packet.data.size(), work.answer.lkey, IBV_ACCESS_LOCAL_WRITE);
        if (!memory) misuse("the destination of a read is no longer registered memory");
        std::memcpy(memory, packet.data.data(), packet.data.size());
    }
    end(work, IBV_WC_SUCCESS);
}

}  // namespace fake
