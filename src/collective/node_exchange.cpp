#include "collective/node_exchange.h"

#include <algorithm>
#include <numeric>

#include "collective/algorithms.h"
#include "collective/channel_exchange.h"
#include "collective/request.h"
#include "link/peer.h"
#include "progress/engine.h"
#include "progress/flags.h"
#include "progress/idle.h"
#include "transport/shm/region.h"

namespace starling::collective {

namespace {

/// Yields before the engine takes over, which may sleep.
constexpr int kCrowdedYields = 30;

}  // namespace

bool EngineSync::add_participant(const link::Process& process) {
    if (process.job->dead() || process.job->map() != MPI_SUCCESS) return false;
    doorbells_.push_back(&shm::Region(process.job->segment().region(process.rank)).doorbell());
    if (process.job != link::self().job &&
        std::find(other_jobs_.begin(), other_jobs_.end(), process.job) == other_jobs_.end())
        other_jobs_.push_back(process.job);
    if (process.job->segment().header().recovers) mortals_.push_back(process);
    return true;
}

bool EngineSync::wait_long(bool (*condition)(void*), void* argument) const {
    bool here = false;
    auto ready = [&] {
        if ((here = condition(argument))) return true;
        for (const link::Job* job : other_jobs_)
            if (job->dead()) return true;
        for (const link::Process& process : mortals_)
            if (const link::Peer* peer = process.job->peer_if_met(process.rank); peer && peer->dead)
                return true;
        return false;
    };
    // On a crowded core every look but the first after a yield is a waste.
    for (int i = 0; i < kCrowdedYields && progress::core_is_crowded(); ++i) {
        progress::yield_core();
        if (ready()) return here;
        progress::poll();
    }
    if (!ready()) progress::wait_for_flags(ready);
    return here;
}

namespace {

/// All members agree on where the leader's area is, and that everyone can reach it.
Task agree(View v, int64_t& offset, int& usable) {
    v.note(co_await bcast_binomial(v, &offset, 1, datatype::predefined(MPI_INT64_T), 0));
    if (v.error != MPI_SUCCESS || offset < 0) usable = 0;
    v.note(co_await allreduce_recursive_doubling(v, MPI_IN_PLACE, &usable, 1, datatype::predefined(MPI_INT),
                                                 datatype::predefined(MPI_MIN)));
    co_return v.error;
}

// Where one member sees another host, every member does.
bool all_here(const message::Roster& members, int n) {
    for (int i = 0; i < n; ++i) {
        const link::Process& process = members.at(i);
        if (process.job->map() != MPI_SUCCESS || !process.job->segment().is_local(process.rank))
            return false;
    }
    return true;
}

}  // namespace

NodeOwner::~NodeOwner() {
    if (!node_) return;
    if (offset_ < 0) return;  // the world's lasts as long as the process
    node_->layout().detached().fetch_add(1);
    if (leads_) retire_area(offset_, participants_);
}

Node* NodeOwner::get(comm::Comm& comm, Exchange& exchange) {
    if (node_) return node_.get();
    if (tried_) return nullptr;
    if (&comm != comm::world() && ++calls_ < 2) return nullptr;
    tried_ = true;
    if (const HostMap* hosts = exchange.inter() ? nullptr : exchange.hosts()) {
        make(comm, exchange, hosts->mine, hosts->my_place);
    } else if (exchange.size <= NodeLayout::kMost && all_here(comm.collective.roster(), exchange.size)) {
        std::vector<int> everyone(static_cast<size_t>(exchange.size));
        std::iota(everyone.begin(), everyone.end(), 0);
        make(comm, exchange, everyone, exchange.rank);
    }
    return node_.get();
}

void NodeOwner::make(comm::Comm& comm, Exchange& exchange, const std::vector<int>& members, int me) {
    // Drawn by all members alike, though on some hosts there may be nothing to agree on.
    const View all = View::all(exchange);
    const auto n = static_cast<int>(members.size());
    if (n == 1 || n > NodeLayout::kMost) return;
    const bool is_world = &comm == comm::world();
    const message::Roster& roster = comm.collective.roster();
    EngineSync sync(me);
    int usable = 1;
    for (int i = 0; i < n && usable; ++i)
        usable = sync.add_participant(roster.at(members[static_cast<size_t>(i)]));
    int64_t offset = kWorldArea;
    if (!is_world) {
        leads_ = me == 0;
        offset = leads_ ? allocate_area(n) : 0;
        const int64_t allocated = offset;
        const int error = run(agree(all.of(members, me), offset, usable));
        if (error != MPI_SUCCESS || !usable) {
            // Nobody has used it.
            if (leads_ && allocated >= 0) {
                shm::Region region(link::self().job->segment().region(link::self().rank));
                NodeLayout(region.collective() + allocated, n).detached().store(static_cast<uint32_t>(n));
                retire_area(allocated, n);
            }
            return;
        }
        offset_ = offset;
        participants_ = n;
    }
    const link::Process leader = roster.at(members[0]);
    const shm::Region region(leader.job->segment().region(leader.rank));
    node_ = std::make_unique<Node>(region.collective() + offset, n, me, std::move(sync));
}

}  // namespace starling::collective
