#include "link/retry.h"

#include <algorithm>
#include <cstring>
#include <list>
#include <utility>

#include "base/no_destroy.h"
#include "base/saved_failure.h"
#include "base/state.h"
#include "link/peer.h"

namespace starling::link {

namespace {

/// A packet that waits for a path to its receiver, or, without a packet, a job that waits to be mapped.
struct Unfinished {
    Process to;
    PendingControl packet;
    bool has_packet;
    JobHold hold{to.job};
};
STARLING_STATE Lazy<std::list<Unfinished>> unfinished_storage;  ///< oldest first
STARLING_STATE bool is_retrying = false;

/// Returns whether the attempt was made, or has become needless.
bool attempt(const Unfinished& one) {
    Job& job = *one.to.job;
    if (job.dead()) return true;
    if (!one.has_packet) return job.map() == MPI_SUCCESS || job.dead();
    Peer* const peer = job.peer(one.to.rank);
    if (!peer) return job.dead();
    send_control(*peer, one.packet.kind, one.packet.payload, one.packet.bytes);
    return true;
}

bool waits_for_path(const Process& to) {
    const std::list<Unfinished>& all = unfinished_storage.get();
    return std::any_of(all.begin(), all.end(), [&](const Unfinished& one) { return one.has_packet && one.to == to; });
}

void attempt_or_keep(Unfinished&& one, bool is_behind) {
    const SavedFailure before;
    if (is_behind || !attempt(one)) unfinished_storage.get().push_back(one);
}

}  // namespace

void send_when_possible(const Process& to, packet::PacketKind kind, const void* payload, uint32_t bytes) {
    Unfinished one{to, {kind, bytes, {}}, true};
    if (bytes) std::memcpy(one.packet.payload, payload, bytes);
    attempt_or_keep(std::move(one), waits_for_path(to));
}

void map_when_possible(Job& job) { attempt_or_keep({{&job, 0}, {}, false}, false); }

void retry_failed() {
    std::list<Unfinished>& all = unfinished_storage.get();
    if (all.empty() || is_retrying) return;
    is_retrying = true;
    const SavedFailure before;
    // Mapping a job may release the lock, and other threads may add packets meanwhile. Each one is tried once, in order of its receiver.
    std::list<Unfinished> tried;
    for (size_t left = all.size(); left > 0; --left) {
        const auto first = all.begin();
        const bool is_behind = std::any_of(tried.begin(), tried.end(), [&](const Unfinished& one) {
            return one.has_packet && first->has_packet && one.to == first->to;
        });
        if (is_behind || !attempt(*first))
            tried.splice(tried.end(), all, first);
        else
            all.erase(first);
    }
    all.splice(all.begin(), tried);
    is_retrying = false;
}

}  // namespace starling::link
