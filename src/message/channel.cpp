#include "message/channel.h"

#include "base/error.h"
#include "base/kept_memory.h"
#include "base/no_destroy.h"
#include "base/state.h"
#include "link/peer.h"
#include "message/context_table.h"
#include "message/match.h"
#include "message/receive.h"
#include "message/revocation.h"

namespace starling::message {

bool share_segment(const Roster& members) {
    link::Job* const job = link::self().job;
    for (int i = 0; i < members.size(); ++i) {
        const link::Process process = members.at(i);
        if (process.job != job || !job->segment().is_local(process.rank)) return false;
    }
    return true;
}

STARLING_STATE NoDestroy<ContextTable> directory_storage;

void ContextTable::insert(MatchContext& channel) {
    if ((count_ + 1) * 2 > slots_.size()) grow();
    put(channel);
    ++count_;
}

size_t ContextTable::remove(MatchContext& channel) {
    if (last_ == &channel) last_ = nullptr;
    const size_t begin = hash(channel.context());
    size_t gap = begin, i = begin;
    while (slots_[gap] != &channel) gap = next(gap);
    // Fill the gap with later entries of this probe sequence that may be stored there, because a search ends at the first empty slot.
    for (i = next(gap); slots_[i]; i = next(i)) {
        const size_t home = hash(slots_[i]->context());
        const size_t from_home = (i - home) & (slots_.size() - 1), from_gap = (i - gap) & (slots_.size() - 1);
        if (from_home < from_gap) continue;
        slots_[gap] = slots_[i];
        gap = i;
    }
    slots_[gap] = nullptr;
    --count_;
    return ((i - begin) & (slots_.size() - 1)) + 1;
}

void ContextTable::put(MatchContext& channel) {
    size_t i = hash(channel.context());
    while (slots_[i]) i = next(i);
    slots_[i] = &channel;
}

void ContextTable::grow() {
    std::vector<MatchContext*> old(slots_.empty() ? 16 : slots_.size() * 2, nullptr);
    old.swap(slots_);
    for (MatchContext* channel : old)
        if (channel) put(*channel);
}

MatchContext* ContextTable::lookup(uint64_t context) {
    if (slots_.empty()) return nullptr;
    for (size_t i = hash(context); slots_[i]; i = next(i))
        if (slots_[i]->context() == context) return last_ = slots_[i];
    return nullptr;
}

MatchContext::MatchContext(uint64_t context, const Roster& roster, int my_rank)
    : context_(context), roster_(roster), my_rank_(my_rank), queues_(std::make_unique<MatchQueues>()) {
    directory.insert(*this);
    adopt_orphans(*this);
}

void MatchContext::set_revoked(bool announces) {
    revoked_ = true;
    announces_ = announces_ || announces;
    peers_.reset();
}

void MatchContext::acknowledge(int rank) {
    if (acknowledged_.empty()) acknowledged_.resize(static_cast<size_t>(roster_.size()));
    acknowledged_[static_cast<size_t>(rank)] = true;
}

MatchContext::~MatchContext() {
    if (announces_) announce_revocation(*this);
    directory.remove(*this);
    while (Unexpected* message = queues_->arrival.front()) {
        MatchQueues::remove(*message);
        throw_away(*message);
    }
}

link::Peer* MatchContext::find_peer(int rank) {
    if (revoked_) {
        why_revoked();
        return nullptr;
    }
    if (!peers_)
        peers_.reset(static_cast<link::Peer**>(allocate_zeros(static_cast<size_t>(roster_.size()), sizeof(link::Peer*))));
    const link::Process process = roster_.at(rank);
    peers_[rank] = process.job->peer(process.rank);
    if (connect_hint && *connect_hint && peers_[rank]) link::request_connection(*peers_[rank]);
    return peers_[rank];
}

void MatchContext::connect_recent_peers() {
    if (!peers_) return;
    for (int rank = 0; rank < roster_.size(); ++rank)
        if (peers_[rank]) link::request_connection(*peers_[rank]);
}

}  // namespace starling::message
