#include "collective/algorithms/neighborhood.h"

#include <numeric>
#include <utility>

#include "collective/collective_request.h"
#include "collective/comm_call_known.h"
#include "collective/shm/neighborhood.h"
#include "profile/collectives.h"

namespace starling::collective {

namespace {

using comm::NeighborEdge;
using comm::Neighborhood;
using node::ByMessages;
using NeighborTraffic = node::NeighborTraffic;

// Starts all messages at once. The program has specified how many there are, and any other algorithm would send as many. `error`: an
// earlier error.
Task exchange_blocks(View v, NeighborTraffic traffic, ByMessages what, int error) {
    FirstError first;
    first.note(error);
    const Neighborhood& near = traffic.neighborhood;
    RequestGroup group(v, what.mine ? static_cast<int>(near.sends.size()) : 0, static_cast<int>(what.from.size()));
    for (size_t i = 0; i < what.from.size(); ++i) {
        const NeighborEdge& from = near.receives[i];
        const Blocks& to = traffic.receive;
        if (what.from[i]) group.receive(to.at(from.block), to.count(from.block), to.type(from.block), from.rank);
    }
    for (size_t i = 0; what.mine && i < near.sends.size(); ++i) {
        const int block = traffic.block_to(near.sends[i]);
        group.send(traffic.send.at(block), traffic.send.count(block), traffic.send.type(block), near.sends[i].rank);
    }
    co_await group;
    first.note(v.error);
    co_return first;
}

/// Sends each neighbor the index of its block in this process's buffer of the stage, and receives such an index from each source into
/// `found`. Needed once per communicator.
Task exchange_places(View v, const Neighborhood& near, std::vector<int>& found) {
    const Datatype& type = datatype::predefined(MPI_INT);
    std::vector<int> own(near.sends.size());
    std::iota(own.begin(), own.end(), 0);
    RequestGroup group(v, static_cast<int>(own.size()), static_cast<int>(found.size()));
    for (size_t i = 0; i < found.size(); ++i) group.receive(&found[i], 1, type, near.receives[i].rank);
    for (size_t i = 0; i < own.size(); ++i) group.send(&own[i], 1, type, near.sends[i].rank);
    co_await group;
    co_return v.error;
}

/// Runs a persistent operation through the stage, then exchanges by messages the blocks that were too long for the stage.
Task through_stage(NodeOwner& stage, NodeDriver on, View v, NeighborTraffic traffic) {
    if (!stage.places) {
        auto& found = stage.places.emplace(traffic.neighborhood.receives.size());
        if (const int error = co_await exchange_places(v, traffic.neighborhood, found)) co_return error;
    }
    ByMessages rest;
    const int error = co_await node::neighbors(on, traffic, *stage.places, rest);
    if (!rest.any()) co_return error;
    co_return co_await exchange_blocks(v, traffic, std::move(rest), error);
}

/// Runs a blocking operation through the stage, and returns the task that exchanges by messages the blocks that were too long for the
/// stage.
Task run_through_stage(NodeOwner& stage, const NodeDriver& on, const View& v, const NeighborTraffic& traffic) {
    if (!stage.places) {
        auto& found = stage.places.emplace(traffic.neighborhood.receives.size());
        if (const int error = run(exchange_places(v, traffic.neighborhood, found))) return Task::completed(error);
    }
    ByMessages rest;
    Task done = node::neighbors(on, traffic, *stage.places, rest);
    if (!rest.any()) return done;
    return exchange_blocks(v, traffic, std::move(rest), done.result());
}

void note(const char* how, const NeighborTraffic& traffic) {
    const Neighborhood& near = traffic.neighborhood;
    const bool sends = !near.sends.empty();
    if (!sends && near.receives.empty()) return;
    profile::note_choice(
        how, sends ? traffic.send.bytes(traffic.block_to(near.sends[0])) : traffic.receive.bytes(near.receives[0].block));
}

Task by_messages(const View& v, const NeighborTraffic& traffic) {
    const Neighborhood& near = traffic.neighborhood;
    if (profile::watching) [[unlikely]]
        note("linear", traffic);
    if (near.sends.empty() && near.receives.empty()) return Task::completed(MPI_SUCCESS);
    return exchange_blocks(v, traffic, {true, std::vector<bool>(near.receives.size(), true)}, MPI_SUCCESS);
}

// Simultaneous operations use messages, so that each proceeds independently. So do graphs in which some members have no neighbors: programs
// skip the call there (PETSc does), which does no harm with messages.
Task begin(CommCall& call, const NeighborTraffic& traffic) {
    if (!call.has_stage_to_itself() || !traffic.neighborhood.everyone) {
        call.view = View::all(call.exchange);
        return by_messages(call.view, traffic);
    }
    return call.when_known([=](CommCall& c) {
        if (!c.stage.node_of_all()) return by_messages(c.view, traffic);
        if (profile::watching) [[unlikely]]
            note("node", traffic);
        return c.is_planned() ? through_stage(c.stage, c.on_node(), c.view, traffic)
                              : run_through_stage(c.stage, c.on_node(), c.view, traffic);
    });
}

}  // namespace

Task neighbor_allgather(CommCall& call, const Neighborhood& near, const void* send, int64_t count, const Datatype& type,
                        const Blocks& receive) {
    return begin(call, {near, Blocks(send, count, type), true, receive});
}

Task neighbor_alltoall(CommCall& call, const Neighborhood& near, const Blocks& send, const Blocks& receive) {
    return begin(call, {near, send, false, receive});
}

}  // namespace starling::collective
