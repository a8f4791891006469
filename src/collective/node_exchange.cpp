#include "collective/node_exchange.h"

#include <algorithm>

#include "collective/algorithms.h"
#include "collective/channel_exchange.h"
#include "collective/request.h"
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
    return true;
}

bool EngineSync::wait_long(bool (*condition)(void*), void* argument) const {
    bool here = false;
    auto ready = [&] {
        if ((here = condition(argument))) return true;
        for (const link::Job* job : other_jobs_)
            if (job->dead()) return true;
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

}  // namespace

NodeOwner::~NodeOwner() {
    if (!node_) return;
    if (offset_ < 0) return;  // the world's lasts as long as the process
    node_->layout().detached().fetch_add(1);
    if (leads_) retire_area(offset_);
}

Node* NodeOwner::get(comm::Comm& comm, Exchange& exchange) {
    if (node_) return node_.get();
    if (tried_ || exchange.size == 1 || exchange.size > NodeLayout::kMost) return nullptr;
    const bool is_world = &comm == comm::world();
    if (!is_world && ++calls_ < 2) return nullptr;
    tried_ = true;
    const message::Roster& members = comm.collective.roster();
    EngineSync sync(exchange.rank);
    int usable = 1;
    for (int i = 0; i < exchange.size && usable; ++i) usable = sync.add_participant(members.at(i));
    int64_t offset = kWorldArea;
    if (!is_world) {
        leads_ = exchange.rank == 0;
        offset = leads_ ? allocate_area(exchange.size) : 0;
        const int64_t allocated = offset;
        const int error = run(agree(View::all(exchange), offset, usable));
        if (error != MPI_SUCCESS || !usable) {
            // Nobody has used it.
            if (leads_ && allocated >= 0) {
                shm::Region region(link::self().job->segment().region(link::self().rank));
                NodeLayout(region.collective() + allocated, exchange.size)
                    .detached()
                    .store(static_cast<uint32_t>(exchange.size));
                retire_area(allocated);
            }
            return nullptr;
        }
        offset_ = offset;
    }
    const link::Process leader = members.at(0);
    const shm::Region region(leader.job->segment().region(leader.rank));
    node_ =
        std::make_unique<Node>(region.collective() + offset, exchange.size, exchange.rank, std::move(sync));
    return node_.get();
}

}  // namespace starling::collective
