#include "collective/shm/stage_owner.h"

#include <algorithm>
#include <numeric>

#include "base/counter_start.h"
#include "collective/algorithms.h"
#include "collective/channel_exchange.h"
#include "collective/collective_request.h"
#include "job/places.h"
#include "link/host_memory.h"
#include "link/peer.h"
#include "link/transports.h"
#include "message/receive.h"
#include "progress/blocking_wait.h"
#include "progress/core_sharing.h"
#include "progress/engine.h"
#include "progress/flag_wait.h"

namespace starling::collective {

namespace {

/// The maximum number of participants for which stages allocate pipeline buffers in outboxes.
constexpr int kMostLend = 4;

}  // namespace

bool EngineSync::add_participant(const link::Process& process) {
    if (process.job->dead() || process.job->map() != MPI_SUCCESS) return false;
    participants_.push_back(process);
    const link::SegmentRegion region(process.job->segment().region(process.rank));
    doorbells_.push_back(&region.doorbell());
    outboxes_.push_back(region.outbox());
    if (process.job != link::self().job && std::find(other_jobs_.begin(), other_jobs_.end(), process.job) == other_jobs_.end())
        other_jobs_.push_back(process.job);
    if (process.job->segment().header().recovers) mortals_.push_back(process);
    return true;
}

EngineSync EngineSync::same() const {
    EngineSync other(me_);
    other.doorbells_ = doorbells_;
    other.outboxes_ = outboxes_;
    other.participants_ = participants_;
    other.other_jobs_ = other_jobs_;
    other.mortals_ = mortals_;
    return other;
}

std::byte* EngineSync::area_at(int64_t offset) const {
    const link::Process& leader = participants_[0];
    return link::SegmentRegion(leader.job->segment().region(leader.rank)).collective() + offset;
}

void EngineSync::use_area(std::byte* area, int64_t offset, AreaUse use) {
    const int n = participants();
    reports.area = area;
    lends_ = n <= kMostLend && use != AreaUse::meetings;
    lender = std::make_unique<NodeLender>(NodeLayout(area, n), participants_, offset, use, me_ == 0);
}

bool EngineSync::find_ended() const {
    for (const link::Job* job : other_jobs_)
        if (job->dead()) return true;
    for (const link::Process& process : mortals_)
        if (const link::Peer* peer = process.job->find_peer(process.rank); peer && peer->dead) return true;
    return watches_elsewhere_ && message::failed_member(*reports.channel) >= 0;
}

struct EngineSync::LongWait {
    const EngineSync& sync;
    bool (*condition)(void*);
    void* argument;
    const NodeWait& what;
    bool here = false;

    bool operator()() { return (here = condition(argument)) || sync.has_member_ended(); }
};

template <class Layout>
void EngineSync::report_missing(const NodeWait& what, const Layout& layout, progress::WaitReporter& teller) const {
    const auto n = static_cast<int>(participants_.size());
    const auto missing = [&](int i) {
        if (i == me_ || i >= n) return;
        WaitReportPage::OperationEntry member{};
        member.kind = WaitReportPage::OperationKind::member;
        member.flags = WaitReportPage::kOfCollective;
        member.rank = i;
        member.context = reports.channel->context();
        member.peer = participants_[static_cast<size_t>(i)].rank;
        member.peer_job = participants_[static_cast<size_t>(i)].job->address().id;
        teller.waits_for(member, nullptr);
    };
    if (what.who == NodeWait::Who::root) missing(what.first);
    if (what.who == NodeWait::Who::everyone) teller.for_everyone();
    const bool writers = what.who == NodeWait::Who::writers;
    if (!writers && what.who != NodeWait::Who::readers) return;
    for (int i = what.first; i < what.last; ++i) {
        const int who = what.participant(i);
        const uint32_t there = writers ? layout.slot(who, what.sequence).sequence.load() : layout.done(who).load();
        if (!EngineStage::reached(there, what.sequence)) missing(who);
    }
}
template void EngineSync::report_missing(const NodeWait&, const NodeLayout&, progress::WaitReporter&) const;
template void EngineSync::report_missing(const NodeWait&, const LaneLayout&, progress::WaitReporter&) const;

bool EngineSync::needs_yield(const NodeWait& what) const {
    if (participants() > NodeLayout::kFew) return true;
    const NodeLayout layout(reports.area, participants());
    const uint32_t core = progress::own_core();
    const auto is_here = [&](int i) {
        const std::atomic<uint32_t>* place = doorbells_[static_cast<size_t>(i)]->place();
        return place && (place->load(std::memory_order_relaxed) & job::CpuLocation::kCpu) == core;
    };
    const auto has_written = [&](int i) {
        return EngineStage::reached(layout.slot(i, what.sequence).sequence.load(), what.sequence);
    };
    const auto has_finished = [&](int i) { return EngineStage::reached(layout.done(i).load(), what.sequence - 1); };
    return what.needs_yield(me_, participants(), is_here, has_written, has_finished);
}

bool EngineSync::wait_long(bool (*condition)(void*), void* argument, const NodeWait& what) const {
    LongWait ready{*this, condition, argument, what};
    const progress::WaitSite site{
        nullptr, progress::Expected::soon, [](const void* a, progress::WaitReporter& teller) {
            const auto& waiting = *static_cast<const LongWait*>(a);
            waiting.sync.report_call(teller);
            waiting.sync.report_missing(
                waiting.what, NodeLayout(waiting.sync.reports.area, static_cast<int>(waiting.sync.participants_.size())),
                teller);
        }};
    for (int i = 0; i < progress::kCrowdedYields && progress::core_is_crowded(); ++i) {
        if (!progress::yield_core()) break;
        if (ready()) return ready.here;
        for (int spins = needs_yield(what) ? 0 : progress::kCrowdedFlagSpins; spins > 0; --spins) {
            __builtin_ia32_pause();
            if (ready()) return ready.here;
        }
        progress::poll();
    }
    if (!ready()) progress::wait_for_flags(ready, site);
    return ready.here;
}

namespace {

/// A member's knowledge after all have exchanged whether they can access the leader's area.
struct StageReach {
    int64_t offset;  ///< offset of the stage's area in the leader's region
    int mine = 1;    ///< whether this process knows the offset and can access all regions
    int of_all = 0;  ///< whether this process knows that all members can access all regions
};

/// Broadcasts the area's offset and exchanges whether all members can access it. Errors are recorded in `reach`.
Task query_all(View v, StageReach& reach) {
    v.note(co_await bcast_binomial(v, &reach.offset, 1, datatype::predefined(MPI_INT64_T), 0));
    if (v.error != MPI_SUCCESS || reach.offset < 0) reach.mine = 0;
    int least = reach.mine;
    v.note(co_await allreduce_recursive_doubling(v, MPI_IN_PLACE, &least, 1, datatype::predefined(MPI_INT),
                                                 datatype::predefined(MPI_MIN)));
    reach.of_all = v.error == MPI_SUCCESS && least;
    co_return MPI_SUCCESS;
}

/// Decides whether the area is used, with the same result on all members. If a member dies during the exchange, some may know that all can
/// access the area and others may not. But all of them know its offset, so the first one to write the decision into the area decides for
/// all.
bool decide(const NodeLayout& area, const StageReach& reach) {
    enum : uint32_t { undecided, used, unused };
    if (!reach.mine) return false;
    uint32_t verdict = undecided;
    if (area.verdict().compare_exchange_strong(verdict, reach.of_all ? used : unused)) return reach.of_all;
    return verdict == used;
}

// Returns whether all members are on this host. If one member sees another host, every member does.
bool all_here(const message::Roster& members, int n) {
    for (int i = 0; i < n; ++i) {
        const link::Process& process = members.at(i);
        if (process.job->map() != MPI_SUCCESS || !process.job->segment().is_local(process.rank)) return false;
    }
    return true;
}

}  // namespace

NodeOwner::~NodeOwner() {
    if (!node_) return;
    node_->leave();
    link::shared_memory().lending().end_loans(std::move(node_->sync().lender));
}

void NodeOwner::wait_for_queue() {
    const progress::WaitSite site{nullptr, progress::Expected::soon, [](const void* a, progress::WaitReporter& teller) {
                                      const EngineSync& sync = static_cast<const NodeOwner*>(a)->node_->sync();
                                      sync.report_call(teller);
                                      sync.report_awaited(teller);
                                  }};
    progress::wait_until([](void* a) { return static_cast<NodeOwner*>(a)->turns_.none(); }, this, site);
}

// All members must decide alike. Connected jobs may differ in whether they continue after failures, so only one job's members do.
bool NodeOwner::needs_stage_at_once(const comm::Comm& comm) {
    link::Job& mine = *link::self().job;
    if (!mine.segment().header().recovers) return false;
    const message::Roster& members = comm.collective.roster();
    for (int i = 0; i < members.size(); ++i)
        if (members.at(i).job != &mine) return false;
    return true;
}

Task NodeOwner::make(comm::Comm& comm, Exchange& exchange) {
    if (tried_) return Task::completed(MPI_SUCCESS);
    tried_ = true;
    std::vector<int> members;
    int me = exchange.rank;
    if (const HostMap* hosts = exchange.inter() ? nullptr : exchange.hosts()) {
        members = hosts->mine;
        me = hosts->my_place;
    } else if (exchange.size <= NodeLayout::kMost && all_here(comm.collective.roster(), exchange.size)) {
        members.resize(static_cast<size_t>(exchange.size));
        std::iota(members.begin(), members.end(), 0);
    } else {
        return Task::completed(MPI_SUCCESS);
    }
    // All members draw the tag of the agreement, even if on some hosts the members have nothing to agree on.
    const View all = View::all(exchange);
    exchange.last_was_own();
    const auto n = static_cast<int>(members.size());
    if (n == 1 || n > NodeLayout::kMost) return Task::completed(MPI_SUCCESS);
    return make_of(comm, exchange, std::move(members), me, all);
}

Task NodeOwner::make_of(comm::Comm& comm, Exchange& exchange, std::vector<int> members, int me, View all) {
    const auto n = static_cast<int>(members.size());
    const bool of_plan = &exchange != &exchange_of(comm);
    const bool is_world = &comm == comm::world() && !of_plan;
    const message::Roster& roster = comm.collective.roster();
    EngineSync sync(me);
    StageReach reach{kWorldArea};
    for (int i = 0; i < n && reach.mine; ++i) reach.mine = sync.add_participant(roster.at(members[static_cast<size_t>(i)]));
    const AreaUse use = of_plan ? AreaUse::plan : AreaUse::communicator;
    const bool leads = !is_world && me == 0;
    if (!is_world) {
        reach.offset = leads ? allocate_area(n, use) : 0;
        const int64_t allocated = reach.offset;
        co_await query_all(all.of(members, me), reach);
        const link::Process leader = roster.at(members[0]);
        const link::SegmentRegion region(leader.job->segment().region(leader.rank));
        const NodeLayout area(region.collective() + reach.offset, n);
        if (!decide(area, reach)) {
            // The members do not use the area, but it is kept until all of them have read the decision in it.
            if (leads ? allocated >= 0 : reach.mine) area.detached().fetch_add(1);
            if (leads && allocated >= 0) retire_area(allocated, n, use);
            co_return MPI_SUCCESS;
        }
    }
    std::byte* const area = sync.area_at(reach.offset);
    // The area of the world's communicator lasts as long as the process.
    sync.use_area(area, is_world ? kNoArea : reach.offset, use);
    start(std::move(sync), comm, exchange, is_world ? 0 : kCounterStart);
    co_return MPI_SUCCESS;
}

void NodeOwner::start(EngineSync&& sync, comm::Comm& comm, Exchange& exchange, uint32_t first) {
    const int n = sync.participants(), me = sync.me();
    sync.reports.channel = &comm.collective;
    sync.reports.exchange = &exchange;
    is_part_ = n < exchange.size;
    if (is_part_) sync.watch_elsewhere();
    std::byte* const area = sync.reports.area;
    if (n == 2 && !is_part_) meter_ = std::make_unique<StageMeter>();
    node_ = std::make_unique<EngineStage>(area, n, me, std::move(sync), first);
}

int64_t NodeOwner::allocate_next() const {
    const EngineStage* first = node_of_all();
    return first && first->me() == 0 ? allocate_area(first->participants(), AreaUse::meetings) : kNoArea;
}

void NodeOwner::create_as(const NodeOwner& first, comm::Comm& comm, Exchange& exchange, int64_t offset) {
    tried_ = true;
    EngineSync sync = first.node_->sync().same();
    sync.use_area(sync.area_at(offset), offset, AreaUse::meetings);
    start(std::move(sync), comm, exchange, kCounterStart);
}

void NodeOwner::abandon_next(int64_t offset) const {
    const EngineStage& first = *node_;
    NodeLayout(first.sync().area_at(offset), first.participants()).detached().fetch_add(1);
    if (first.me() == 0) retire_area(offset, first.participants(), AreaUse::meetings);
}

}  // namespace starling::collective
