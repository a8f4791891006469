#include "plan/manager.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <utility>

#include "base/config.h"
#include "base/live.h"
#include "base/state.h"
#include "link/connection_quota.h"
#include "link/host_memory.h"
#include "link/transports.h"
#include "plan/cached_plan.h"
#include "plan/connection_choice.h"
#include "plan/file_plan.h"
#include "plan/found_phases.h"
#include "plan/history_plan.h"
#include "plan/phase_traffic.h"
#include "plan/plan_review.h"
#include "profile/traffic.h"
#include "progress/engine.h"

namespace starling::plan {

namespace {

using link::Peer;
using profile::PhaseId;

/// Maximum number of refused peers that are remembered.
constexpr size_t kMostGuests = 64;

/// A peer whose request for a connection was refused, because this process had no unused connection slot.
struct Guest {
    uint64_t job;
    uint32_t rank;
    uint64_t phases;  ///< value of PlanManager::phases_ when the peer was refused
};

/// Returns the transport's connector; null if there is none.
transport::Connector* connector_of(TransportSide side) {
    if (side == kHere) return &link::shared_memory();
    return link::network() ? link::network()->connector() : nullptr;
}

/// The peers that have a connection slot of a transport, and one of them whose slot could be used for another peer.
struct Users {
    uint32_t all = 0;      ///< number of peers with a slot
    uint32_t leaving = 0;  ///< number of peers whose connection is closing
    Peer* idle = nullptr;  ///< peer whose open connection is not in the plan and was not used in this phase; null: none
};

Users users_of(TransportSide side) {
    const auto visit = [](void* user, void* argument) {
        Peer& peer = *static_cast<Peer*>(user);
        Users& users = *static_cast<Users*>(argument);
        ++users.all;
        users.leaving += peer.state == link::ConnectionState::quiescing;
        const bool unused = peer.planned == 0 && peer.traffic && !peer.traffic->hook.linked();
        if (peer.state == link::ConnectionState::connected && unused) users.idle = &peer;
    };
    Users users;
    if (transport::Connector* const connector = connector_of(side)) connector->each_user(visit, &users);
    return users;
}

// Returns the connection quota of a transport. A closing direct ring only holds memory, so a new ring may be opened meanwhile; a closing
// TCP connection still counts against the limit.
ConnectionSlots places_of(TransportSide side, const Users& users) {
    const uint32_t rings = std::min<uint32_t>(static_cast<uint32_t>(live(config().max_direct)), link::kRingSlots);
    const uint32_t limit = side == kHere ? rings : static_cast<uint32_t>(live(config().max_connections));
    const uint32_t room = side == kHere ? link::kRingSlots : limit, staying = users.all - users.leaving;
    const uint32_t soon = limit > staying ? limit - staying : 0;
    const uint32_t now = std::min(soon, room > users.all ? room - users.all : 0);
    return {limit, now, soon - now};
}

class PlanManager {
  public:
    explicit PlanManager(std::unique_ptr<Source> source) : source_(std::move(source)) {}

    void begin(PhaseId ended, PhaseId begun);
    void note(Peer& peer, link::PlaceNews news);
    bool poll() { return (unsettled_ || asking_) && poll_at_length(); }

  private:
    bool poll_at_length();
    bool is_wrong(const ExchangedTraffic& phase);
    void leave();
    void adopt(const Partners* partners);
    void adopt_phase(PhaseId phase, uint64_t occurrence);
    void settle(bool anew);
    void request_wanted(TransportSide side, bool anew);
    void serve_guests(TransportSide side);
    bool serve(Peer& guest, TransportSide side);
    void open_ahead(TransportSide side);

    std::unique_ptr<Source> source_;
    uint64_t phases_ = 0;  ///< number of phases begun
    bool has_plan_ = false;
    Partners wanted_;                   ///< the plan of the current phase
    Partners next_;                     ///< the plan of the phase that is expected next
    size_t opened_ahead_[kSides] = {};  ///< number of entries of next_ that were examined
    uint32_t courtesies_[kSides] = {};  ///< number of connections closed in this phase for peers outside the plan
    std::vector<PhaseId> successors_;   ///< for each phase, the phase that followed it the last time
    std::vector<Guest> guests_;
    OnDemand on_demand_[kSides];
    PlanReview doubt_;
    bool unsettled_ = false;
    bool asking_ = false;  ///< whether the source waits for the launcher's answer
    // Buffers of request_wanted(), kept so that a phase allocates no memory for them.
    std::vector<Peer*> peers_;
    std::vector<ConnectionAvailability> standings_;
};

STARLING_STATE PlanManager* manager = nullptr;

void PlanManager::begin(PhaseId ended, PhaseId begun) {
    if (!source_) return;
    ++phases_;
    const ExchangedTraffic exchanged = end_traffic();
    if (is_wrong(exchanged)) return leave();
    source_->ended(ended, exchanged.partners, begun);
    for (PhaseId id = static_cast<PhaseId>(successors_.size()); id <= std::max(ended, begun); ++id) successors_.push_back(id);
    successors_[ended] = begun;
    adopt_phase(begun, profile::phase(begun).occurrences + 1);
    std::erase_if(guests_, [this](const Guest& guest) { return guest.phases + 1 < phases_; });
    settle(true);
}

bool PlanManager::is_wrong(const ExchangedTraffic& phase) {
    uint64_t on_demand = 0;
    const uint32_t thresholds[kSides] = {static_cast<uint32_t>(live(config().direct_threshold)),
                                         static_cast<uint32_t>(live(config().connect_messages))};
    for (const TransportSide side : {kHere, kElsewhere})
        if (connector_of(side))
            on_demand += on_demand_[side].phase(
                phase.traffic[side],
                {thresholds[side], static_cast<uint32_t>(live(config().replace_messages)), places_of(side, {}).limit});
    return has_plan_ && doubt_.phase(phase.messages, phase.on_connections, on_demand);
}

void PlanManager::leave() {
    if (config().verbose > 0)
        std::fprintf(
            stderr, "starling: rank %u: dropped the plan in phase %llu: it sent fewer messages on connections than on demand\n",
            link::self().rank, static_cast<unsigned long long>(phases_));
    adopt(nullptr);
    next_.clear();
    guests_.clear();
    source_.reset();
}

// Makes `partners` the plan of the current phase. Peers that stay in the plan keep their connections.
void PlanManager::adopt(const Partners* partners) {
    // A peer that is in both plans is notified once, with its new priority.
    const Partners before = std::exchange(wanted_, partners ? *partners : Partners{});
    for (const Partner& partner : before)
        if (Peer* const peer = peer_of(partner)) peer->planned = 0;
    has_plan_ = partners != nullptr;
    // A peer with few messages is not worth a connection, even if a slot is unused.
    std::erase_if(wanted_, [](const Partner& partner) { return partner.priority < link::kConsiderAfter; });
    for (const Partner& partner : wanted_)
        if (Peer* const peer = peer_of(partner)) peer->planned = partner.priority;
    for (const Partners* const all : {&before, &std::as_const(wanted_)})
        for (const Partner& partner : *all)
            if (Peer* const peer = peer_of(partner))
                peer->base->by.connector()->set_expected_traffic(*peer->base, peer->planned);
}

// Adopts the plan of a phase, and looks up the plan of the phase expected next: the one that followed the last time, or the plan's next
// entry.
void PlanManager::adopt_phase(PhaseId phase, uint64_t occurrence) {
    adopt(source_->partners(phase, occurrence));
    asking_ = source_->waits();
    const PhaseId next = successors_[phase];
    const Partners* const partners = next != phase ? source_->partners(next, profile::phase(next).occurrences + 1)
                                                   : source_->partners_after(phase, occurrence);
    next_ = partners ? *partners : Partners{};
    std::fill_n(opened_ahead_, +kSides, 0);
    std::fill_n(courtesies_, +kSides, 0);
}

void PlanManager::note(Peer& peer, link::PlaceNews news) {
    unsettled_ = true;
    if (news != link::PlaceNews::turned_away) return;
    peer.backoff = 0;  // the peer wants a connection now, so its earlier refusals do not count
    if (guests_.size() >= kMostGuests) return;
    const uint64_t job = peer.job.address().id;
    const auto same = [&](const Guest& guest) { return guest.job == job && guest.rank == peer.rank; };
    if (std::none_of(guests_.begin(), guests_.end(), same)) guests_.push_back({job, peer.rank, phases_});
}

bool PlanManager::poll_at_length() {
    if (source_ && asking_ && source_->poll()) {
        const PhaseId phase = profile::current_phase();
        adopt_phase(phase, profile::phase(phase).occurrences);
        unsettled_ = true;
    }
    asking_ = source_ && source_->waits();
    if (!unsettled_) return false;
    settle(false);
    return true;
}

void PlanManager::settle(bool anew) {
    unsettled_ = false;
    for (const TransportSide side : {kHere, kElsewhere}) {
        if (!connector_of(side)) continue;
        request_wanted(side, anew);
        serve_guests(side);
        open_ahead(side);
    }
}

// Requests missing connections of the plan. `anew`: a phase begins, so peers that refused in the last one may accept now.
void PlanManager::request_wanted(TransportSide side, bool anew) {
    peers_.clear();
    standings_.clear();
    for (const Partner& partner : wanted_) {
        Peer* const peer = peer_of(partner);
        if (!peer || !is_of(*peer, side)) continue;
        const bool barred = (peer->backoff > 0 && !anew) || !peer->gains;
        peers_.push_back(peer);
        standings_.push_back(peer->state != link::ConnectionState::closed ? ConnectionAvailability::held
                             : barred                                     ? ConnectionAvailability::barred
                                                                          : ConnectionAvailability::missing);
    }
    if (peers_.empty()) return;
    for (const size_t i : choose_requests(standings_, places_of(side, users_of(side)))) link::request_connection(*peers_[i]);
}

// Requests connections to peers that this process refused earlier ("guests"), whether they are in its plan or only it is in theirs. Without
// this, such a peer would ask again only after more traffic.
void PlanManager::serve_guests(TransportSide side) {
    // Work on a copy of the list, because while one peer is served, others may be refused and added to it.
    for (const Guest& guest : std::exchange(guests_, {})) {
        Peer* const peer = peer_of(guest.job, guest.rank);
        if (!peer || peer->state != link::ConnectionState::closed) continue;
        if (!is_of(*peer, side) || !serve(*peer, side)) guests_.push_back(guest);
    }
}

// Requests a connection to a peer that this process refused earlier. Returns true if the peer can be removed from the list.
bool PlanManager::serve(Peer& guest, TransportSide side) {
    const Users users = users_of(side);
    const ConnectionSlots places = places_of(side, users);
    if (places.free > 0) {
        link::request_connection(guest);
        return true;
    }
    // A peer in the plan is served by its priority. For a peer outside the plan an idle connection is closed, a limited number of times per
    // phase.
    if (guest.planned == 0 && has_plan_ && users.idle && users.leaving == 0 && courtesies_[side] < places.limit) {
        ++courtesies_[side];
        link::request_close(*users.idle);
    }
    return false;
}

// Opens connections of the next phase in the slots that this phase leaves unused.
void PlanManager::open_ahead(TransportSide side) {
    if (opened_ahead_[side] >= next_.size()) return;
    uint32_t free = places_of(side, users_of(side)).free;
    for (size_t& i = opened_ahead_[side]; i < next_.size() && free > 0; ++i) {
        if (next_[i].priority < link::kConsiderAfter) continue;
        Peer* const peer = peer_of(next_[i]);
        if (!peer || !is_of(*peer, side) || peer->state != link::ConnectionState::closed) continue;
        if (peer->backoff > 0 || !peer->gains) continue;
        link::request_connection(*peer);
        --free;
    }
}

std::unique_ptr<Source> source_of(PlanSource which) {
    if (which == PlanSource::learn) return std::make_unique<HistoryPlan>();
    if (which == PlanSource::file) return std::make_unique<FilePlan>();
    return nullptr;
}

}  // namespace

void start() {
    if (config().plan == PlanSource::first) link::keep_connections();
    if (config().plan == PlanSource::cached) follow_cached_plan();
    std::unique_ptr<Source> source = source_of(config().plan);
    if (source) profile::start_counting();
    // Find phases for a profile even if there is no plan.
    if (profile::counting()) find_phases();
    if (!source) return;
    manager = new PlanManager(std::move(source));
    profile::listen_to_phases([](PhaseId ended, PhaseId begun) { manager->begin(ended, begun); });
    link::listen_to_places([](Peer& peer, link::PlaceNews news) {
        if (news != link::PlaceNews::no_slot) manager->note(peer, news);
    });
    progress::add_poller([] { return manager->poll(); });
}

}  // namespace starling::plan
