#include "plan/cached_plan.h"

#include <bit>
#include <cstdio>
#include <optional>
#include <vector>

#include "base/config.h"
#include "base/counter_start.h"
#include "base/error.h"
#include "base/live.h"
#include "base/state.h"
#include "control/plan_reply.h"
#include "link/connection_quota.h"
#include "link/job.h"
#include "mpi.h"
#include "plan/phase_traffic.h"
#include "plan/plan_request.h"
#include "progress/engine.h"

namespace starling::plan {

namespace {

using link::Peer;

class CachedPlan {
  public:
    bool poll() { return state_ != PlanState::settled && poll_at_length(); }
    /// Notes that a peer got no connection for want of a slot: only then can a wrong plan do harm. It may happen for every message, so the
    /// plan is reviewed after 1, 2, 4, … occasions.
    void doubt() {
        if (state_ == PlanState::settled && !partners_.empty() && std::has_single_bit(++doubts_)) state_ = PlanState::doubted;
    }

  private:
    enum class PlanState : uint8_t { not_asked, asked, doubted, settled };

    bool poll_at_length();
    void receive();
    void follow(const std::vector<control::PlannedPeer>& peers);
    void review();
    void leave();

    PlanState state_ = PlanState::not_asked;
    uint64_t doubts_ = 0;
    PlanRequest request_;
    std::vector<uint32_t> partners_;  ///< ranks in the plan, by falling priority
};

STARLING_STATE CachedPlan* cached_plan = nullptr;

bool CachedPlan::poll_at_length() {
    if (state_ == PlanState::not_asked)
        state_ = request_.start() ? PlanState::asked : PlanState::settled;
    else if (state_ == PlanState::asked)
        receive();
    else
        review();
    return state_ == PlanState::settled;
}

void CachedPlan::receive() {
    std::optional<control::PlanReply> reply;
    if (!request_.poll(reply)) return;
    state_ = PlanState::settled;
    if (reply && !reply->phases.empty()) follow(reply->phases[0].peers);
    clear_failure();
}

// Opens the rings to partners on this host, as far as the quota goes. Connections to other hosts open when their traffic justifies them,
// since only the sizes of messages show whether TCP would be faster; the plan decides which of them have priority.
void CachedPlan::follow(const std::vector<control::PlannedPeer>& peers) {
    auto rings = static_cast<uint32_t>(live(config().max_direct));
    for (const control::PlannedPeer& partner : peers) {
        Peer* const peer = peer_of(link::self().job->address().id, partner.rank);
        if (!peer) continue;
        partners_.push_back(partner.rank);
        peer->planned = partner.priority;
        if (!is_of(*peer, kHere) || rings == 0) continue;
        --rings;
        if (peer->state == link::ConnectionState::closed) link::request_connection(*peer);
    }
}

void CachedPlan::review() {
    state_ = PlanState::settled;
    uint64_t all = 0, planned = 0;
    link::self().job->each_peer([&](const Peer& peer) {
        const uint32_t messages = peer.next_send + peer.next_receive - 2 * kCounterStart;
        all += messages;
        if (peer.planned > 0) planned += messages;
    });
    if (is_wrong_plan(all, planned)) leave();
}

void CachedPlan::leave() {
    for (const uint32_t rank : partners_)
        if (Peer* const peer = link::self().job->find_peer(rank)) peer->planned = 0;
    partners_.clear();
    if (config().verbose > 0)
        std::fprintf(stderr, "starling: rank %u: dropped the last run's plan: the traffic of this run differs\n",
                     link::self().rank);
}

}  // namespace

void follow_cached_plan() {
    cached_plan = new CachedPlan;
    link::listen_to_places([](Peer&, link::PlaceNews news) {
        if (news != link::PlaceNews::slot_released) cached_plan->doubt();
    });
    progress::add_poller([] { return cached_plan->poll(); });
}

}  // namespace starling::plan
