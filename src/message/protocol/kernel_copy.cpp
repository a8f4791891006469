#include "message/protocol/kernel_copy.h"

#include <algorithm>
#include <cerrno>

#include "base/config.h"
#include "base/error.h"
#include "base/live.h"
#include "datatype/datatype.h"
#include "link/host_memory.h"
#include "message/completion.h"
#include "message/protocol/pieces.h"
#include "message/protocol/timed_copy.h"

namespace starling::message::kernel_copy {

namespace {

/// Returns the address at which the message is mapped in this process; null if it is not.
const std::byte* mapped(const Matched& message) {
    if (message.is_to_self()) return reinterpret_cast<const std::byte*>(message.offer.address);
    return message.request.peer->shm_path.exchanged(message.offer.address, message.bytes);
}

/// Reads the message, by loads where its memory is mapped, otherwise by a system call. Returns 0 or an errno value.
int read(const Matched& message) {
    const ReceiveRequest& request = message.request;
    const Rts& offer = message.offer;
    if (const std::byte* there = mapped(message)) {
        datatype::unpack(*request.type, request.count, request.buffer, 0, there, message.bytes);
        return 0;
    }
    if (!message.is_to_self() && !link::has_pid({&message.peer().job, message.peer().rank}, offer.pid)) return ESRCH;
    constexpr int kMost = 512;
    iovec list[kMost];
    for (uint64_t at = 0; at < message.bytes;) {
        const int n = datatype::blocks(*request.type, request.count, request.buffer, at, list, kMost);
        uint64_t sum = 0;
        for (int i = 0; i < n; ++i) {
            list[i].iov_len = std::min<uint64_t>(list[i].iov_len, message.bytes - at - sum);
            sum += list[i].iov_len;
        }
        if (const int error = link::read_remote(offer.pid, offer.address + at, list, static_cast<size_t>(n), sum)) return error;
        at += sum;
    }
    return 0;
}

/// Returns whether the sender has abandoned any send, perhaps this one, since its RTS.
bool was_abandoned_since(const link::Peer& peer, const Rts& offer) {
    std::atomic_thread_fence(std::memory_order_acquire);
    return peer.shm_path.region.presence().abandoned_sends.load(std::memory_order_relaxed) != offer.abandoned_sends;
}

}  // namespace

bool is_possible(const Matched& message) {
    if (!message.peer().supports(transport::kSharesMemory) || !message.offer.address) return false;
    if (message.is_to_self()) return true;
    return live(config().single_copy) != SingleCopy::off &&
           (link::shares_pids({&message.peer().job, message.peer().rank}) || mapped(message));
}

bool is_mapped(const Matched& message) { return mapped(message) != nullptr; }

bool pays(const Matched&) { return true; }

bool start(const Matched& message) {
    settle(message, read(message));
    return true;
}

void settle(const Matched& message, int error) {
    ReceiveRequest& request = message.request;
    if (error == ESRCH) {
        timed_copy::forget(request);
        return finish(request, fail(MPI_ERR_PROC_ABORTED, "rank %d ended before its message of %llu bytes was read",
                                    request.outcome.source, static_cast<unsigned long long>(message.offer.bytes)));
    }
    // Use fragments instead. Either the kernel refused the copy, or it cannot reach memory that the sender can (a device's, for example).
    // Or the sender's program reused its buffer during the read, and the bytes read may be wrong.
    if (error || (message.bytes > 0 && was_abandoned_since(message.peer(), message.offer))) {
        pieces::start({request, message.offer, message.bytes, false});
        return;
    }
    timed_copy::completed(request);  // a copy that failed is timed with the fragments that replace it
    const Fin fetched{message.offer.serial};
    link::send_control(*request.peer, packet::PacketKind::fetched, &fetched, sizeof fetched);
    request.outcome.bytes = message.bytes;
    finish(request, request.outcome.error);
}

}  // namespace starling::message::kernel_copy
