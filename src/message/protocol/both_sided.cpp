#include "message/protocol/both_sided.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/config.h"
#include "base/copy.h"
#include "base/live.h"
#include "base/process.h"
#include "base/state.h"
#include "datatype/datatype.h"
#include "link/host_memory.h"
#include "message/protocol/kernel_copy.h"
#include "message/protocol/rendezvous.h"
#include "progress/blocking_wait.h"
#include "progress/engine.h"

namespace starling::message::both_sided {

namespace {

/// A receive in progress whose sender may still write chunks.
struct Split {
    ReceiveRequest* request = nullptr;
    Rts offer;
    std::byte* target = nullptr;
    uint64_t bytes = 0;
    uint64_t chunk = 0;
    int error = 0;  ///< errno value of this process's own reads; 0: none
    /// Pid of a failed sender that may still write into this slot, valid while `request` is null; 0: none.
    pid_t last_writer = 0;

    uint32_t total() const { return static_cast<uint32_t>((bytes + chunk - 1) / chunk); }
    int read(uint64_t from, uint64_t to) const {
        const iovec block{target + from, std::min(to, bytes) - from};
        if (const std::byte* there = request->peer->shm_path.exchanged(offer.address + from, block.iov_len)) {
            copy_by_call(block.iov_base, there, block.iov_len);
            return 0;
        }
        if (!link::has_pid({&request->peer->job, request->peer->rank}, offer.pid)) return ESRCH;
        return link::read_remote(offer.pid, offer.address + from, &block, 1, block.iov_len);
    }
};
STARLING_STATE Split splits[link::kSplitSlots];
STARLING_STATE int open_splits = 0;
STARLING_STATE bool polled = false;

link::SplitSlot& own_slot(uint32_t slot) {
    const link::Process& me = link::self();
    return link::SegmentRegion(me.job->segment().region(me.rank)).split(slot);
}

void finish(uint32_t index, int error) {
    const Split split = splits[index];
    splits[index] = {};
    if (error == ESRCH) splits[index].last_writer = split.offer.pid;
    --open_splits;
    kernel_copy::settle({*split.request, split.offer, split.bytes, false}, error);
}

/// Ends a receive if the sender has finished all chunks that it claimed, and reads the chunks that it failed to write. Returns true if the
/// receive is complete.
bool settle(uint32_t index) {
    const link::SplitSlot& slot = own_slot(index);
    const Split& split = splits[index];
    const uint32_t back = link::claimed_from_back(slot);
    if (slot.written.load(std::memory_order_acquire) < back) return false;
    const bool failed = slot.failed.load(std::memory_order_relaxed) != 0;
    int error = split.error;
    if (!error && failed) error = split.read((split.total() - back) * split.chunk, split.bytes);
    finish(index, error);
    return true;
}

bool poll_splits() {
    if (open_splits == 0) return false;
    bool any = false;
    for (uint32_t i = 0; i < link::kSplitSlots; ++i)
        if (splits[i].request) any |= settle(i);
    return any;
}

int free_split() {
    for (uint32_t i = 0; i < link::kSplitSlots; ++i)
        if (!splits[i].request && (splits[i].last_writer == 0 || neighbour_ended(splits[i].last_writer)))
            return static_cast<int>(i);
    return -1;
}

/// Claims and reads chunks until none is left. Returns 0 or an errno value.
int read_from_front(const Split& split, link::SplitSlot& slot, uint64_t generation) {
    int error = 0;
    for (int64_t i; !error && (i = link::claim_chunk(slot, generation, split.total(), false)) >= 0;)
        error = split.read(static_cast<uint64_t>(i) * split.chunk, static_cast<uint64_t>(i + 1) * split.chunk);
    // Claim the remaining chunks, so that the sender claims no more. Another protocol then transfers the whole message again, over the
    // chunks that the sender has written.
    while (error && link::claim_chunk(slot, generation, split.total(), false) >= 0) {}
    return error;
}

}  // namespace

bool is_possible(const Matched& message) {
    return kernel_copy::is_possible(message) && datatype::is_block(*message.request.type, message.request.count) &&
           !message.is_to_self();
}

bool pays(const Matched& message) {
    // Copy from both sides only if the sender can help. On a crowded core it cannot run while this process does. While it reads long
    // messages from this process (open_offers > 0), it has no time.
    return message.bytes >= live(config().split_limit) && !progress::core_is_crowded() && message.peer().open_offers == 0;
}

bool start(const Matched& message) {
    const int index = free_split();
    if (index < 0) return false;
    if (!polled) progress::add_poller(poll_splits);
    polled = true;
    ReceiveRequest& request = message.request;
    auto* target = static_cast<std::byte*>(datatype::block_address(*request.type, request.buffer));
    Split& split = splits[index];
    split = {&request, message.offer, target, message.bytes, link::split_chunk(message.bytes), 0, 0};
    ++open_splits;
    link::SplitSlot& slot = own_slot(static_cast<uint32_t>(index));
    const uint64_t generation = link::open_split(slot);
    const ShareCopy share{reinterpret_cast<uint64_t>(target), message.bytes, message.offer.serial, own_pid(),
                          static_cast<uint16_t>(index),       generation};
    link::send_control(*request.peer, packet::PacketKind::share_copy, &share, sizeof share);
    split.error = read_from_front(split, slot, generation);
    settle(static_cast<uint32_t>(index));
    return true;
}

void on_share(link::Peer& peer, const ShareCopy& share) {
    const SendRequest* request = rendezvous::find(peer, share.send_serial);
    if (!request || !peer.supports(transport::kSharesMemory) || share.slot >= link::kSplitSlots) return;
    if (share.bytes > request->bytes || !datatype::is_block(*request->type, request->count)) return;
    const auto* source = static_cast<const std::byte*>(datatype::block_address(*request->type, request->buffer));
    link::SplitSlot& slot = peer.shm_path.region.split(share.slot);
    const uint64_t chunk = link::split_chunk(share.bytes);
    const auto total = static_cast<uint32_t>((share.bytes + chunk - 1) / chunk);
    for (int64_t i; (i = link::claim_chunk(slot, share.generation, total, true)) >= 0;) {
        const uint64_t from = static_cast<uint64_t>(i) * chunk;
        const uint64_t bytes = std::min<uint64_t>(chunk, share.bytes - from);
        if (std::byte* there = peer.shm_path.exchanged(share.address + from, bytes))
            copy_by_call(there, source + from, bytes);
        else if (!link::has_pid({&peer.job, peer.rank}, share.pid) ||
                 link::write_remote(share.pid, share.address + from, source + from, bytes) != 0)
            slot.failed.store(1, std::memory_order_relaxed);
        slot.written.fetch_add(1, std::memory_order_release);
    }
    job::ring(peer.shm_path.region.doorbell());  // the receiver may be asleep, waiting for this process
}

void fail(const Gone& gone) {
    for (uint32_t i = 0; i < link::kSplitSlots; ++i)
        if (splits[i].request && gone.includes(*splits[i].request->peer)) finish(i, ESRCH);
}

}  // namespace starling::message::both_sided
