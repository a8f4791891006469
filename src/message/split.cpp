#include "message/split.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/config.h"
#include "base/process.h"
#include "progress/engine.h"
#include "progress/idle.h"
#include "transport/shm/kernel_copy.h"

namespace starling::message {

namespace {

/// A message of ours whose sender still writes.
struct Split {
    ReceiveRequest* request = nullptr;
    Offer offer;
    std::byte* target = nullptr;
    uint64_t bytes = 0;
    uint64_t chunk = 0;
    void (*over)(ReceiveRequest&, const Offer&, int) = nullptr;
    int error = 0;          ///< of our own reading
    pid_t last_writer = 0;  ///< no request, but this process of a failed job may not have stopped writing

    uint32_t total() const { return static_cast<uint32_t>((bytes + chunk - 1) / chunk); }
    int read(uint64_t from, uint64_t to) const {
        const iovec block{target + from, std::min(to, bytes) - from};
        return shm::read_remote(offer.pid, offer.address + from, &block, 1, block.iov_len);
    }
};
constinit Split splits[shm::kSplitSlots];
int open_splits = 0;

shm::SplitSlot& own_slot(uint32_t slot) {
    const link::Process& me = link::self();
    return shm::Region(me.job->segment().region(me.rank)).split(slot);
}

void finish(uint32_t index, int error) {
    Split split = splits[index];
    splits[index] = {};
    if (error == ESRCH) splits[index].last_writer = split.offer.pid;
    --open_splits;
    split.over(*split.request, split.offer, error);
}

/// True if the sender has finished all it claimed. What it could not write is read here after all.
bool settle(uint32_t index) {
    const shm::SplitSlot& slot = own_slot(index);
    const Split& split = splits[index];
    const uint32_t back = shm::claimed_from_back(slot);
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
    for (uint32_t i = 0; i < shm::kSplitSlots; ++i)
        if (splits[i].request) any |= settle(i);
    return any;
}

int free_split() {
    for (uint32_t i = 0; i < shm::kSplitSlots; ++i)
        if (!splits[i].request && (splits[i].last_writer == 0 || process_gone(splits[i].last_writer)))
            return static_cast<int>(i);
    return -1;
}

}  // namespace

int start_split(ReceiveRequest& request, const Offer& offer, void* target, uint64_t bytes,
                void (*over)(ReceiveRequest&, const Offer&, int)) {
    // On a crowded core the sender does not run while we do, and one that fetches from us has no time.
    const bool alone = progress::core_is_crowded() || request.peer->open_offers > 0;
    const int index = bytes < config().split_limit || alone ? -1 : free_split();
    if (index < 0 || (&request.peer->job == link::self().job && request.peer->rank == link::self().rank)) return EAGAIN;
    const uint64_t chunk = shm::split_chunk(bytes);
    Split split{&request, offer, static_cast<std::byte*>(target), bytes, chunk, over, 0, 0};

    static bool polled = false;
    if (!polled) progress::add_poller(poll_splits);
    polled = true;
    shm::SplitSlot& slot = own_slot(static_cast<uint32_t>(index));
    const uint64_t generation = shm::open_split(slot);
    const Share share{reinterpret_cast<uint64_t>(target), bytes,     offer.serial, getpid(),
                      static_cast<uint16_t>(index),       generation};
    link::send_control(*request.peer, packet::Kind::share_copy, &share, sizeof share);

    int error = 0;
    for (int64_t i; !error && (i = shm::claim_chunk(slot, generation, split.total(), false)) >= 0;)
        error = split.read(static_cast<uint64_t>(i) * chunk, static_cast<uint64_t>(i + 1) * chunk);
    if (error) {
        // Nothing more may be claimed; what the sender writes meanwhile is overwritten by whoever copies next.
        while (shm::claim_chunk(slot, generation, split.total(), false) >= 0) {}
    }
    splits[index] = split;
    ++open_splits;
    if (error && shm::claimed_from_back(slot) == 0) {
        splits[index] = {};
        --open_splits;
        return error;
    }
    splits[index].error = error;
    settle(static_cast<uint32_t>(index));
    return 0;
}

void help_copy(link::Peer& peer, const Share& share, const void* source) {
    if (share.slot >= shm::kSplitSlots) return;
    shm::SplitSlot& slot = peer.region.split(share.slot);
    const uint64_t chunk = shm::split_chunk(share.bytes);
    const auto total = static_cast<uint32_t>((share.bytes + chunk - 1) / chunk);
    for (int64_t i; (i = shm::claim_chunk(slot, share.generation, total, true)) >= 0;) {
        const uint64_t from = static_cast<uint64_t>(i) * chunk;
        const uint64_t bytes = std::min<uint64_t>(chunk, share.bytes - from);
        if (shm::write_remote(share.pid, share.address + from, static_cast<const std::byte*>(source) + from, bytes) != 0)
            slot.failed.store(1, std::memory_order_relaxed);
        slot.written.fetch_add(1, std::memory_order_release);
    }
    job::ring(peer.region.doorbell());  // it may have gone to sleep over its wait for us
}

void fail_splits(link::Job& job) {
    for (uint32_t i = 0; i < shm::kSplitSlots; ++i)
        if (splits[i].request && &splits[i].request->peer->job == &job) finish(i, ESRCH);
}

void fail_splits(link::Peer& peer) {
    for (uint32_t i = 0; i < shm::kSplitSlots; ++i)
        if (splits[i].request && splits[i].request->peer == &peer) finish(i, ESRCH);
}

}  // namespace starling::message
