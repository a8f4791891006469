#include "message/match_or_cancel.h"

#include "link/host_memory.h"
#include "link/peer.h"

namespace starling::message {

namespace {

std::atomic<uint64_t>& own_word(const SendRequest& request) {
    const link::Process& me = link::self();
    return link::SegmentRegion(me.job->segment().region(me.rank)).verdicts().word(request.serial);
}

uint64_t own_key(const SendRequest& request) {
    return link::verdict_key(request.peer->job.address().id, request.peer->rank, request.sequence);
}

uint64_t their_key(uint32_t sequence) {
    const link::Process& me = link::self();
    return link::verdict_key(me.job->address().id, me.rank, sequence);
}

/// Returns whether a match-or-cancel word decides whether the message was cancelled. A sender on another host has no word in this host's
/// memory. The word of a dead sender is ignored, because all its messages fail.
bool has_word(const link::Peer& peer, const Rts& offer) {
    return offer.has_verdict && peer.supports(transport::kSharesMemory) && !peer.dead;
}

}  // namespace

void open_verdict(SendRequest& request) {
    if (request.waits || !request.peer->supports(transport::kSharesMemory)) return;
    request.has_verdict = link::open_verdict(own_word(request), own_key(request));
}

bool cancel_verdict(SendRequest& request) {
    if (!request.has_verdict || !link::cancel_verdict(own_word(request), own_key(request))) return false;
    request.has_verdict = false;
    return true;
}

void close_verdict(SendRequest& request) {
    link::close_verdict(own_word(request));
    request.has_verdict = false;
}

bool match_verdict(const link::Peer& peer, const Rts& offer, uint32_t sequence) {
    return !has_word(peer, offer) ||
           link::match_verdict(peer.shm_path.region.verdicts().word(offer.serial), their_key(sequence));
}

bool was_cancelled(const link::Peer& peer, const Rts& offer, uint32_t sequence) {
    return has_word(peer, offer) &&
           link::was_cancelled(peer.shm_path.region.verdicts().word(offer.serial), their_key(sequence));
}

}  // namespace starling::message
